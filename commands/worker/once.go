package worker

import (
	"context"
	"fmt"
	"time"

	"jobledger/commands/internal/usertx"
	"jobledger/projection"
)

// Once records the job in the transaction tx of the program's own database, and reports whether it is the
// first to do so. The handler makes its effect in the same transaction if first is true, and leaves it out
// otherwise:
//
//	first, err := worker.Once(ctx, tx, job)
//	if err != nil {
//		return nil, err
//	}
//	if first {
//		_, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = balance - 17 WHERE …`)
//		...
//	}
//	return nil, tx.Commit()
//
// What that guarantees: of all transactions that called Once for the same job and found first true, at most
// one commits, as long as its row is kept, however often the job runs: after a kill between the commit and
// the end of the job, after a lost lease, by two workers at the same time, or after an operator's retry. So
// the effect is made at most once. A job that has succeeded has made it, because the handler returns after
// the commit: then it is made exactly once. This holds for what is written in tx, and for nothing else.
//
// The row has the token of the claim too, so that the ledger says which attempt made the effect. tx is a
// *sql.Tx or what has the methods of a pgx.Tx; outbox.Migrate makes the table,
// jobledger_once. The transaction of an attempt that runs at the same time makes this one wait.
//
// An outbox.Relay of that database removes the rows of jobs that have ended when they are 90 days old, or
// another time; where there is none, or where the ledger that made them is another one, [ForgetOnce] does.
func Once(ctx context.Context, tx any, job projection.Job) (first bool, err error) {
	conn, err := usertx.Of(tx)
	var n int64
	if err == nil {
		n, err = conn.Exec(ctx, `INSERT INTO jobledger_once (job, token) VALUES ($1, $2)
			ON CONFLICT (job) DO NOTHING`, string(job.ID), job.Token)
	}
	if err != nil {
		return false, fmt.Errorf("once: %w", err)
	}
	return n == 1, nil
}

// ForgetOnce removes what [Once] recorded before that time, and returns how many rows that were. A job that
// runs again after that makes its effect again: keep the rows for longer than jobs are retried.
func ForgetOnce(ctx context.Context, db any, before time.Time) (removed int64, err error) {
	conn, err := usertx.Of(db)
	if err == nil {
		removed, err = conn.Exec(ctx, `DELETE FROM jobledger_once WHERE at < $1`,
			before.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if err != nil {
		return 0, fmt.Errorf("once: %w", err)
	}
	return removed, nil
}
