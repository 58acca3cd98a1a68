package archive

import (
	"context"
	"iter"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// jobsAtOnce is how many jobs one query reads the events of.
const jobsAtOnce = 64

// contents yields the events of the segment file of r: first those up to Lo of the jobs that it carries in,
// job by job, then those of the range. What it yields follows from the events up to Hi, so it is always the
// same.
func contents(ctx context.Context, store *ledger.Store, r segment.Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range carriedIn(ctx, store, r) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		for line, err := range store.Lines(ctx, ledger.Filter{After: r.Lo, Until: r.Hi}, false) {
			if !yield(line.Event, err) || err != nil {
				return
			}
		}
	}
}

func carriedIn(ctx context.Context, store *ledger.Store, r segment.Range) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		jobs, err := ledger.Read(ctx, store, func(tx *ledger.Tx) (map[int64]bool, error) {
			return projection.JobsUntil(ctx, tx, r.Lo, r.Hi)
		})
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for chunk := range slices.Chunk(slices.Sorted(maps.Keys(jobs)), jobsAtOnce) {
			events, err := eventsOf(ctx, store, chunk, r.Lo)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, n := range chunk {
				if ended(events[n]) && !jobs[n] {
					continue
				}
				for _, e := range events[n] {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// eventsOf returns the events of jobs up to one of them, in order.
func eventsOf(ctx context.Context, store *ledger.Store, jobs []int64, until int64) (
	found map[int64][]event.Event, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		found = make(map[int64][]event.Event)
		for e, err := range tx.Events(ctx, ledger.Filter{Jobs: jobs, Until: until}) {
			if err != nil {
				return err
			}
			found[e.N] = append(found[e.N], e)
		}
		return nil
	})
	return found, err
}

// ended reports whether a job with these events has ended.
func ended(events []event.Event) bool {
	for _, e := range slices.Backward(events) {
		if e.Kind().HasSeq() {
			return e.To.Final()
		}
	}
	return true
}
