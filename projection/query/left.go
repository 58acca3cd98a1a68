package query

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Left asks which jobs left the ledger within a window: of Queue, if the span has one.
type Left struct{ Span }

// Departure is one step in which jobs of a queue left the ledger for its archive, or the erasure of what was
// left of one job that had left before.
type Departure struct {
	event.Event             // removed
	event.Left              // without a queue: Jobs is all that is known, as older programs recorded it
	Jobs        int64       // how many left
	Erased      event.JobID // the job that was erased; "": jobs left
}

// Read returns the departures, in order. The ids of the jobs are in the archive, and not in the ledger.
func (q Left) Read(ctx context.Context, tx *ledger.Tx) (all []Departure, err error) {
	if q.To.Pos <= q.From.Pos {
		return nil, nil
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindRemoved}, After: q.From.Pos, Until: q.To.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		b, _ := e.Body.(*event.Removed)
		left := b.Left
		if len(left) == 0 {
			left = []event.Left{{}}
		}
		for _, l := range left {
			d := Departure{Event: e, Left: l, Jobs: l.Jobs(), Erased: b.Erased}
			if l.Queue == "" {
				d.Jobs = b.Jobs
			}
			if q.Queue == "" || q.Queue == l.Queue {
				all = append(all, d)
			}
		}
	}
	return all, nil
}
