package query

import (
	"context"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
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
