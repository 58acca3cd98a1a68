package projection

import (
	"context"
	"iter"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// OpenEvents yields the transitions up to m of the jobs that had not ended at m, job by job. A walk along the
// events after m that adds them to its QueuesOf and its Claims first goes on as if it had begun at the first
// event. Jobs that had ended and were retried after m may be among them. The rows of jobs say which they are.
func OpenEvents(ctx context.Context, tx *ledger.Tx, m Moment) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		open, err := openAsOf(ctx, tx, m)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for e, err := range eventsOfJobs(ctx, tx, open, m) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
