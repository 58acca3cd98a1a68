package outbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger/event"
)

// A row whose id is there already is the same request again.
const (
	insert      = `INSERT INTO jobledger_outbox (id, job, payload) VALUES `
	insertTwice = ` ON CONFLICT (id) DO NOTHING`
)

const insertRows = 100 // in one statement

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
	args := make([]any, 0, 3*len(jobs))
	for i, job := range jobs {
		id, text, err := request(job)
		if err != nil {
			if len(jobs) > 1 {
				err = fmt.Errorf("job %d of %d: %w", i+1, len(jobs), err)
			}
			return nil, err
		}
		ids, args = append(ids, id), append(args, string(id), text, job.Payload)
	}
	for len(args) > 0 {
		part := args[:min(3*insertRows, len(args))]
		if _, err := conn.Exec(ctx, insert+rowsOf(len(part)/3)+insertTwice, part...); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		args = args[len(part):]
	}
	running.expect()
	return ids, nil
}

// request checks a job and returns its id, and what the column job has of it.
func request(job commands.Enqueue) (id event.JobID, text string, err error) {
	if err := job.Check(); err != nil {
		return "", "", err
	}
	if job.ID == "" {
		job.ID = ulid.Make().String()
	}
	parsed, err := ulid.ParseStrict(job.ID)
	if err != nil {
		return "", "", &commands.InvalidError{Field: "id", Got: fmt.Sprintf("%.80q", job.ID), Allowed: "a ULID"}
	}
	if text, err = encode(job); err != nil {
		return "", "", fmt.Errorf("outbox: %w", err)
	}
	return event.JobID(parsed.String()), text, nil
}

// rowsOf returns ($1,$2,$3),($4,$5,$6)… for n rows.
func rowsOf(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, ",($%d,$%d,$%d)", 3*i+1, 3*i+2, 3*i+3)
	}
	return list.String()[1:]
}
