// Package sqlite is the engine of a ledger in one SQLite file. It opens, inspects and replaces the file, and
// refuses what would lose acknowledged commits: a file that was exchanged under a live process, a -wal file
// of another ledger, a network file system, a foreign database.
//
// It knows neither events nor jobs; package ledger drives it through the interface of package engine.
//
// Packages of their own are place, the names of a ledger's file and what stands next to it; writequeue,
// fairness between processes that compete for the write lock; doorbell, which wakes those that wait for a
// commit; and walsync, which syncs commits once SQLite's lock is free.
//
// Files in reading order:
//
//   - address.go, open.go, appid.go, migrate.go: from an address to an open file with the newest schema
//   - engine.go, conn.go, bulk.go, errors.go: transactions, statements and errors
//   - latesync.go: when walsync syncs, moves or rewrites the -wal file
//   - notify.go: waking up after commits of other processes
//   - schema.go, maintain.go, compact.go: checks, repair, copies, checkpoints
//   - inspect.go, diagnose*.go: what doctor and error texts need
//   - filelock*.go, replace.go: the exchange of a ledger's file
//
// Held by TestOpenRefusesForeignFilesUnchanged, TestReplaceUnderLoadLosesNothing and
// TestCommitIntoExchangedFileIsUnknown of package ledger, and by TestPowerCutLosesNothingAcknowledged of
// package ledger/ledgertest/faultvfs.
package sqlite
