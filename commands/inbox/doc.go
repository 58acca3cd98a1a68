// Package inbox enqueues jobs within transactions of the program's own, where the ledger is in the same
// PostgreSQL database or in the same SQLite file: the job exists if and only if the transaction commits.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	_, err = tx.ExecContext(ctx, `INSERT INTO orders (number) VALUES (17)`)
//	...
//	id, err := inbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: payload})
//	...
//	err = tx.Commit()
//
// Nothing else has to run. [Enqueue] writes a row into the table inbox of the ledger, and takes no lock of
// the ledger. The next claim of a worker, or the next sweep, makes a job of the row. For a database of
// another server, or a file of its own, there is package outbox.
//
// # What is guaranteed
//
// The id of the job is chosen by Enqueue and is final. The row leaves the inbox and the job comes into the
// ledger in one transaction: a row becomes one job, whatever is killed, and however many processes move rows.
//
// Jobs come into the ledger in the order of their rows. The rows of one transaction are in the order of the
// calls, and a transaction that began after another had committed comes after it. Transactions that overlap
// have no order. The job's time is when it came into the ledger; when it was asked for is in its id, which is
// a ULID. It is enqueued by "inbox:" and the user of the server, or by "inbox" from a file.
//
// A key ([commands.Enqueue] Key, UniqueWhile) and the jobs that a job waits for are the ledger's, and judged
// when the row is moved. A row that the ledger does not take is kept with the reason, and the rows after it
// go on: [Refused] lists such rows, [Retry] has one tried again, [Drop] removes it.
//
// # One file
//
// With SQLite the program's tables are in the file of the ledger. [Open] opens it as the ledger itself does.
// The names of the program's tables should have a beginning of their own; triggers are not allowed, as they
// could run within a transaction of the ledger. A transaction of the program keeps all writers of the file
// waiting, so it must be short. Backups and restores carry the program's tables too.
//
// # Who may ask
//
// With PostgreSQL, a user who is granted the role jobledger_enqueuer (see roles.sql) may insert id, job and
// payload, and nothing else: not read, claim or record anything. Programs in other languages insert rows too;
// the columns are a contract, which "jobledger help go" states.
//
// Files in reading order: enqueue.go ([Enqueue], [EnqueueMany], [In]), open.go ([Open]), refused.go.
//
// Held by TestInboxMovesCommittedRowsInOrder, TestInboxRefused, TestInboxRole and TestKilledInbox.
package inbox
