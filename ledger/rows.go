package ledger

import (
	"context"
	"database/sql/driver"
)

// Each runs a query, after everything that was written before it, and calls fn for each row until it returns false. The
// values are int64, string, []byte (nil for an empty one) and nil. fn may keep them, but not the slice.
func (tx *Tx) Each(ctx context.Context, fn func(row []driver.Value) bool, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if !fn(rows.row) {
			return nil
		}
	}
	return rows.Err()
}
