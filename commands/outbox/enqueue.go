package outbox

import (
	"context"
	"errors"
	"fmt"

	"jobledger/commands"
	"jobledger/commands/internal/askrow"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger/event"
)

// A row whose id is there already is the same request again.
const (
	insert      = `INSERT INTO jobledger_outbox (id, job, payload) VALUES `
	insertTwice = ` ON CONFLICT (id) DO NOTHING`
)

// Enqueue asks for a new job within tx and returns the id that the job will have. The job comes into the
// ledger after tx has committed, when a [Relay] moves it; if tx is rolled back, there is never a job.
//
// tx is a *sql.Tx, a *sql.Conn, or what has the methods of a pgx.Tx. With a *sql.DB or a pgx pool, the row is
// in a transaction of its own. If RunAt is not set, the job may run when it comes into the ledger.
//
// Errors: [commands.ErrInvalid], with which tx can go on; those of the database.
func Enqueue(ctx context.Context, tx any, job commands.Enqueue) (id event.JobID, err error) {
	ids, err := EnqueueMany(ctx, tx, job)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// EnqueueMany is Enqueue for many jobs, a hundred in a statement, and returns their ids in the order of jobs,
// which is also their order in the ledger. It checks all of them before it writes. With a *sql.DB or a pgx
// pool each hundred is in a transaction of its own: give a transaction.
func EnqueueMany(ctx context.Context, tx any, jobs ...commands.Enqueue) (ids []event.JobID, err error) {
	conn, err := usertx.Of(tx)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	if ids, err = askrow.Insert(ctx, conn, insert, insertTwice, jobs); err != nil {
		return nil, inOutbox(err)
	}
	running.expect()
	return ids, nil
}

// inOutbox says of an error of the database where it came up.
func inOutbox(err error) error {
	if errors.Is(err, commands.ErrInvalid) {
		return err
	}
	return fmt.Errorf("outbox: %w", err)
}
