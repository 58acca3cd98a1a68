package query

import (
	"context"
	"database/sql/driver"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Queues asks which queues there are, and which of them are paused. How many jobs they have answers
// [jobledger/projection/status.Queues].
type Queues struct {
	At     *projection.Moment // nil: now
	Paused bool               // only those that are paused
}

// Read returns the queues that have or had jobs or were ever paused, by name.
func (q Queues) Read(ctx context.Context, tx *ledger.Tx) (found []projection.Queue, err error) {
	pos := int64(math.MaxInt64)
	if q.At != nil {
		pos = q.At.Pos
		found, err = projection.QueuesAsOf(ctx, tx, *q.At)
	} else {
		found, err = projection.Queues(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	if q.Paused {
		return slices.DeleteFunc(found, func(q projection.Queue) bool { return !q.Paused }), nil
	}
	names, err := projection.QueuesWithJobs(ctx, tx, pos)
	for _, name := range names {
		if !slices.ContainsFunc(found, func(q projection.Queue) bool { return q.Name == name }) {
			found = append(found, projection.Queue{Name: name})
		}
	}
	slices.SortFunc(found, func(a, b projection.Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, err
}

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
