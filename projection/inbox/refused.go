package inbox

import (
	"context"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Refused is a row that the ledger did not take.
type Refused struct {
	Row            // without the payload
	Refusal int64  // when it was refused, in microseconds since 1970
	Why     string // the reason
}

// RefusedAt returns when the row was refused.
func (r Refused) RefusedAt() time.Time { return event.FromMicros(r.Refusal) }

const insertRefused = `INSERT INTO inbox_refused (id, job, payload, at, role, refused_at, why)
VALUES (?, ?, ?, ?, ?, ?, ?)`

// Refuse keeps a row that the ledger does not take, with the reason. The caller removes it from the inbox.
func Refuse(tx *ledger.Tx, r Row, why string) error {
	_, err := tx.Exec(insertRefused, r.ID, r.Job, r.Payload, r.Asked, r.Role, event.Micros(tx.Now()), why)
	return err
}

const selectRefused = `SELECT n, id, job, at, role, refused_at, why FROM inbox_refused `

func (r *Refused) columns() []any {
	return []any{&r.N, &r.ID, &r.Job, &r.Asked, &r.Role, &r.Refusal, &r.Why}
}

// AllRefused returns the refused rows, those first that were refused first, after the one with number n; up
// to limit of them.
func AllRefused(ctx context.Context, tx *ledger.Tx, after int64, limit int) ([]Refused, error) {
	rows, err := tx.Query(ctx, selectRefused+`WHERE n > ? ORDER BY n LIMIT ?`, after, limit)
	return table.All(rows, err, (*Refused).columns)
}

// FindRefused returns the refused row of a job; ok is false if there is none.
func FindRefused(ctx context.Context, tx *ledger.Tx, id event.JobID) (r Refused, ok bool, err error) {
	rows, err := tx.Query(ctx, selectRefused+`WHERE id IN (?, ?) ORDER BY n DESC LIMIT 1`, string(id),
		strings.ToLower(string(id)))
	ok, err = table.First(rows, err, r.columns()...)
	return r, ok, err
}

// Retry puts the refused rows of a job back into the inbox, behind all others, and returns how many.
func Retry(tx *ledger.Tx, id event.JobID) (rows int64, err error) {
	rows, err = tx.Exec(`INSERT INTO inbox (id, job, payload, at, role)
SELECT id, job, payload, at, role FROM inbox_refused WHERE id IN (?, ?) ORDER BY n`, string(id),
		strings.ToLower(string(id)))
	if err == nil && rows > 0 {
		_, err = Drop(tx, id)
	}
	return rows, err
}

// Drop removes the refused rows of a job for good, and returns how many.
func Drop(tx *ledger.Tx, id event.JobID) (rows int64, err error) {
	return tx.Exec(`DELETE FROM inbox_refused WHERE id IN (?, ?)`, string(id), strings.ToLower(string(id)))
}
