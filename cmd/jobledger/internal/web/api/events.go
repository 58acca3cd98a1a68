package api

import (
	"context"
	"iter"
	"net/url"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// MaySeeBodies reports whether the caller of ctx may see payloads and results.
func MaySeeBodies(ctx context.Context) bool { return door.CallerOf(ctx).Has(door.Bodies) }

// Shown is e as the caller of ctx may see it: the event that sets a schedule has a payload, that of the jobs
// to come.
func Shown(ctx context.Context, e event.Event) event.Event {
	if set, ok := e.Body.(*event.ScheduleSet); ok && !MaySeeBodies(ctx) {
		without := *set
		without.Payload = ""
		e.Body = &without
	}
	return e
}

// ShownTo is [Shown] of events to the caller of ctx; nil: they are shown as they are.
func ShownTo(ctx context.Context) func(event.Event) event.Event {
	if MaySeeBodies(ctx) {
		return nil
	}
	return func(e event.Event) event.Event { return Shown(ctx, e) }
}

// EventsOf yields the events that the parameters of /events ask for, at most limit; 0: all. If the caller of
// ctx may not see bodies, payloads are removed from them.
func (a *API) EventsOf(ctx context.Context, params url.Values, limit int) (reader *find.Reader,
	found iter.Seq2[event.Event, error], err error) {
	now := a.now(ctx)
	asked, err := find.Events(params, now)
	if err != nil {
		return nil, nil, err
	}
	var f ledger.Filter
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		if params.Has("job") {
			if asked.Filter.Job, err = numberOf(ctx, tx, params.Get("job")); err != nil {
				return err
			}
		}
		f, err = asked.Resolve(ctx, tx, now)
		return err
	})
	reader = &find.Reader{Store: a.Store, Limit: limit}
	return reader, func(yield func(event.Event, error) bool) {
		for e, err := range reader.Events(ctx, &f) {
			if !yield(Shown(ctx, e), err) {
				return
			}
		}
	}, err
}

func (a *API) readEvents(q *question) error {
	reader, found, err := a.EventsOf(q, q.params, q.limit)
	if err != nil {
		return err
	}
	var last int64
	for e, err := range found {
		if err == nil {
			last = e.Pos
			err = q.add(e)
		}
		if err != nil {
			return err
		}
	}
	q.goOnAfter(last, reader.More)
	return nil
}
