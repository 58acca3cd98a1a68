package state

import (
	"context"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/projection"
)

// Queues returns the queues as they are now or, unless m is nil, as they were at m, by name: those that have
// or had jobs or were ever paused, or only the paused ones.
func Queues(ctx context.Context, tx *ledger.Tx, m *projection.Moment, onlyPaused bool) (
	found []projection.Queue, err error) {
	pos := int64(math.MaxInt64)
	if m != nil {
		pos = m.Pos
		found, err = projection.QueuesAsOf(ctx, tx, *m)
	} else {
		found, err = projection.Queues(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	if onlyPaused {
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

// NamedQueue returns the queue of this name; known is false where the ledger has never seen the name.
func NamedQueue(ctx context.Context, store *ledger.Store, name string) (q projection.Queue, known bool,
	err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		n, err := tx.Name(ctx, name)
		if known = n != 0; err != nil {
			return err
		}
		q, err = projection.GetQueue(ctx, tx, name)
		return err
	})
	return q, known, err
}
