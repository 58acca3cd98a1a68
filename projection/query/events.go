package query

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Events asks for events, the oldest first.
type Events struct {
	Filter   ledger.Filter // what they are about; Resolve adds the window
	From, To *When         // both included; nil: no limit
	At       *When         // only what the ledger had then; nil: all that it has
	Last     int           // only the last so many; 0: all
}

// Resolve returns the filter that q means in the ledger of tx. Whatever q says, it ends where the ledger ends
// now. It returns a projection.ArchivedError if events that it selects may be before the horizon, unless they
// are of one job.
func (q Events) Resolve(ctx context.Context, tx *ledger.Tx, now time.Time) (f ledger.Filter, err error) {
	f = q.Filter
	if f.Until, err = tx.Tail(ctx); err != nil {
		return f, err
	}
	if q.At != nil {
		m, err := q.At.Moment(ctx, tx, "at", now)
		if err != nil {
			return f, err
		}
		f.Until = m.Pos
	}
	if q.From != nil {
		after, err := q.From.Position(ctx, tx, true)
		if err != nil {
			return f, err
		}
		f.After = max(f.After, after)
	}
	if q.To != nil {
		until, err := q.To.Position(ctx, tx, false)
		if err != nil {
			return f, err
		}
		f.Until = min(f.Until, until)
	}
	if q.Last > 0 {
		last := f
		last.Limit, last.Last = q.Last, true
		for e, err := range tx.Events(ctx, last) {
			if err != nil {
				return f, err
			}
			f.After = max(f.After, e.Pos-1)
			break
		}
	}
	if f.Job == 0 {
		err = projection.AfterHorizon(ctx, tx, f.After)
	}
	return f, err
}

// History asks what happened to one job.
type History struct {
	Job int64              // its number
	At  *projection.Moment // up to this moment; nil: up to now
}

// Happened is what happened to a job.
type Happened struct {
	Job    event.JobID
	Events []event.Event // the oldest first; none: it was not enqueued yet
	Now    event.State   // to which all events of the job have led, including those that are not in Events
}

// Read returns what happened to the job.
func (q History) Read(ctx context.Context, tx *ledger.Tx) (h Happened, err error) {
	var all []event.Event
	for e, err := range tx.Events(ctx, ledger.Filter{Job: q.Job}) {
		if err != nil {
			return h, err
		}
		all = append(all, e)
	}
	return q.Of(all), nil
}

// Of is Read for events that the caller has already, such as those of an archive.
func (q History) Of(all []event.Event) (h Happened) {
	for _, e := range all {
		if h.Job = e.Job; e.To != 0 {
			h.Now = e.To
		}
		if q.At == nil || e.Pos <= q.At.Pos {
			h.Events = append(h.Events, e)
		}
	}
	return h
}
