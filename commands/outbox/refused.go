package outbox

import (
	"context"
	"fmt"

	"jobledger/commands/internal/usertx"
)

// RefusedRow is a row that the ledger does not take. It stays in the outbox.
type RefusedRow struct {
	ID  string // of the job that it would have become
	Why string
}

// Refused returns the rows that the ledger does not take, the oldest first. db is as for [Migrate].
func Refused(ctx context.Context, db any) (rows []RefusedRow, err error) {
	conn, err := usertx.Of(db)
	if err == nil {
		const query = `SELECT id, refused FROM jobledger_outbox WHERE refused IS NOT NULL ORDER BY n`
		err = conn.Query(ctx, query, func(scan func(...any) error) (bool, error) {
			var r RefusedRow
			err := scan(&r.ID, &r.Why)
			rows = append(rows, r)
			return true, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return rows, nil
}

// Retry has a refused row tried again, and reports whether there was one with this id. db is as for
// [Migrate]. To give a row up, delete it.
func Retry(ctx context.Context, db any, id string) (bool, error) {
	conn, err := usertx.Of(db)
	var n int64
	if err == nil {
		n, err = conn.Exec(ctx,
			`UPDATE jobledger_outbox SET refused = NULL WHERE id = $1 AND refused IS NOT NULL`, id)
	}
	if err != nil {
		return false, fmt.Errorf("outbox: %w", err)
	}
	running.expect()
	return n > 0, nil
}
