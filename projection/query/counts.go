package query

import (
	"context"
	"database/sql/driver"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Counts asks how many events of each kind there are within a window, of all queues and workers.
type Counts struct{ Span }

const countEvents = `SELECT kind, count(*) FROM events WHERE pos > ? AND pos <= ? GROUP BY kind`

// Read returns the counts. It reads the window.
func (q Counts) Read(ctx context.Context, tx *ledger.Tx) (map[event.Kind]int64, error) {
	counts := make(map[event.Kind]int64)
	err := tx.Each(ctx, func(row []driver.Value) bool {
		kind, _ := row[0].(int64)
		counts[event.Kind(kind)], _ = row[1].(int64)
		return true
	}, countEvents, q.From.Pos, q.To.Pos)
	return counts, err
}
