package outbox

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger/event"
)

// A row whose id is there already is the same request again.
const insert = `INSERT INTO jobledger_outbox (id, job, payload) VALUES ($1, $2, $3)
	ON CONFLICT (id) DO NOTHING`

// Enqueue asks for a new job within tx and returns the id that the job will have. The job comes into the
// ledger after tx has committed, when a [Relay] moves it; if tx is rolled back, there is never a job.
//
// tx is a *sql.Tx, a *sql.Conn, or what has the methods of a pgx.Tx. With a *sql.DB or a pgx pool, the row is
// in a transaction of its own. If RunAt is not set, the job may run when it comes into the ledger.
//
// Errors: [commands.ErrInvalid], with which tx can go on; those of the database.
func Enqueue(ctx context.Context, tx any, job commands.Enqueue) (id event.JobID, err error) {
	conn, err := usertx.Of(tx)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	if err := job.Check(); err != nil {
		return "", err
	}
	if job.ID == "" {
		job.ID = ulid.Make().String()
	}
	parsed, err := ulid.ParseStrict(job.ID)
	if err != nil {
		return "", &commands.InvalidError{Field: "id", Got: fmt.Sprintf("%.80q", job.ID), Allowed: "a ULID"}
	}
	text, err := encode(job)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	if _, err := conn.Exec(ctx, insert, parsed.String(), text, job.Payload); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	running.expect()
	return event.JobID(parsed.String()), nil
}
