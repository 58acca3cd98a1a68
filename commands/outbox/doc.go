// Package outbox enqueues jobs within transactions of the program's own database, SQLite or PostgreSQL: the
// job exists if and only if the transaction commits.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	_, err = tx.ExecContext(ctx, `INSERT INTO orders (number) VALUES (17)`)
//	...
//	id, err := outbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: payload})
//	...
//	err = tx.Commit()
//
// [Migrate] makes the tables, once. [Enqueue] writes a row into the table jobledger_outbox. A [Relay], in the
// same program or as "jobledger relay", moves the rows into the ledger and deletes them:
//
//	relay := &outbox.Relay{Service: service, From: db}
//	err := relay.Run(ctx)
//
// # What is guaranteed
//
// The id of the job is chosen by Enqueue and is in the row. A row becomes one job, whatever happens: the
// relay may be killed at any step, several relays may run at once, the answer of the ledger may be lost. A
// row that was enqueued before is recognized by its id, and only deleted.
//
// Jobs come into the ledger in the order of their rows. The rows of one transaction are in the order of the
// calls, and a transaction that began after another had committed comes after it. Transactions that overlap
// have no order.
//
// A key ([commands.Enqueue] Key) is the ledger's: whether another job has it is known only when the row is
// moved. With the same payload that other job is the job. With another payload the row is refused: it stays
// in the table with the reason, is never tried again, and the rows after it go on. The same holds for a job
// that waits for one that the ledger does not have. [Refused] lists such rows, [Retry] has them tried again.
//
// Whether a key that is not for ever (UniqueWhile) is free is known only when the row is moved, too. Where
// another job has it, no job is made, and the ledger records nothing but the payload that replaces the other
// one. So a relay that is killed between that and the deletion of the row asks again, as one would that comes
// later: if the other job has meanwhile ended, the row becomes a job. A payload with ReplaceDuplicate may
// then be worked on twice, by two jobs. An effect that must not be made twice needs a key of its own.
//
// # Effects
//
// The reverse, a handler that writes into the program's own database at most once, is
// worker.Once. Its table does not grow for ever: Run removes rows after 90 days, see
// KeepOnce.
//
// # Files in reading order
//
//   - migrate.go: the tables; enqueue.go: [Enqueue] and [EnqueueMany]
//   - relay.go: [Relay], its loop and what wakes it; move.go: one step of it; forget.go: old rows
//     of worker.Once
//   - source.go: [Open], for a database by its address; refused.go: rows that the ledger does not take
//
// Held by TestOutboxMovesCommittedRowsInOrder, TestOutboxRepeatIsRecognized, TestRelaysShareAnOutbox and
// TestKilledShop.
package outbox
