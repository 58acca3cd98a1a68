// Package ledger is the append-only store of events: what happened to every job, in one order, forever. It
// knows what can happen, in the vocabulary of package ledger/event, not what it means: that is
// package projection. It knows no engine from the inside either: SQLite and PostgreSQL are internal packages
// behind one interface.
//
// [Open] returns a [Store]. [Store.Read] runs a function with a [Tx] that reads, with [Tx.Events] and
// [Tx.Query]:
//
//	err := store.Read(ctx, func(tx *ledger.Tx) error {
//		for e, err := range tx.Events(ctx, ledger.Filter{Last: true, Limit: 10}) {
//			...
//		}
//	})
//
// [Store.Write] runs one with a Tx that also writes. Programs write through package commands, which calls it:
// otherwise no rule binds what a Tx writes except those of the database.
//
// Files in reading order:
//
//   - open.go, store.go, group_commit.go, thrown.go, burst.go, nested.go, read.go, peek.go, watch.go: a
//     Store, its commit loop, reads, notifications
//   - tx.go, buffers.go, query.go, statements.go, txcache.go: transactions, their buffered writes, and what
//     survives one
//   - events.go, find.go, scan.go, complete.go, pages.go, internal/row: appending and reading events
//   - dictionary.go, dependencies.go, bodies.go, digest.go, erase.go, remove.go: the other tables, and what
//     leaves
//   - check.go, maintain.go, inspect.go: checks, repair, copies, and a ledger seen from outside
//   - internal/session: a connection, the names that it knows, and the pool of those for reading
//   - internal/engine, internal/sqlite, internal/postgres: the contract with a database, and the two engines
//
// The invariants that the whole program rests on, cited in the code by number:
//
//	I1  An event is never changed. It leaves the ledger only as part of a segment that an archived event
//	    names, with all events of its job. The database itself refuses UPDATE, replacement, and any other
//	    DELETE.
//	I2  pos is dense: 1, 2, 3… over the ledger, including what has left it. seq is dense within a job. Events
//	    that change no job's state (refused, erased) have no seq.
//	I3  Every transition is one transaction that compare-and-swaps the job's row (WHERE seq and lease token
//	    are those that were judged) and appends its events. Either both are durable or neither is.
//	I4  The row is written before the events, jobs in the order given: one lock order on every engine.
//	I5  Each claim has a fresh token. A write of an owner presents it; another token changes nothing, and the
//	    attempt is itself recorded as refused, once per token and command. A heartbeat that crosses the end
//	    which its owner gave the claim, or by which the owner learns of a cancel, is refused and not recorded.
//	I6  Rows and events change through one function, Record of commands/internal/journal, which asks
//	    projection.Evolve what an event means. Replay folds the same Evolve, so the table equals the fold of
//	    the events. A whole history is loaded into an empty ledger by audit.Loader, which folds it too. In a
//	    burst the server changes rows and events, but only if it does the same as that function.
//	I7  Time is read once per transaction, after the write lock is held. Rules judge by that reading; the
//	    recorded at is raised to the one before it where the clock ran back, so at never decreases along pos.
//	I8  A caller is answered after the commit. An error from COMMIT means unknown, not failed (ErrUnknown), and
//	    re-sending the same command is safe.
//	I9  Kinds, states and JSON fields are for ever: added to, never renamed, renumbered or reused.
//
// Held by TestWriteFailureRollsBackOwnPartOnly, TestCommitFailureIsUnknownToAll and TestAtNeverDecreases
// here, and by TestPowerCutLosesNothingAcknowledged of package ledger/ledgertest/faultvfs.
package ledger
