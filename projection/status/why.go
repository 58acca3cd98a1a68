package status

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/limit"
)

// Why holds what explains the state of a job.
type Why struct {
	Job    projection.Job
	Cause  event.Event  // the event that led to its state
	Moved  *event.Event // the last rescheduled since then; nil: none
	Queue  projection.Queue
	Ahead  int64       // jobs of its lane that come first, ready or not
	Higher int64       // ready jobs of its queue with a higher priority
	Live   []Worker    // the live worker processes
	Groups int64       // of its lane that come before its own, where it has one
	Limit  limit.Limit // of its queue
	// GroupUsed is the time, in microseconds, until which the starts of its group use up the group's rate; 0:
	// there were none, or it is not known.
	GroupUsed int64
	Holders   []projection.Job      // of the slots, where its queue has limits; the oldest claim first
	Waits     []Wait                // what it is blocked for, up to 100
	Lost      *projection.LostClaim // its last claim, if that is lost and its command may still run; nil: not
	Service
}

// causes are the kinds that bring a job into a state: those of transitions, without rescheduled and
// heartbeat.
var causes = []event.Kind{event.KindEnqueued, event.KindClaimed, event.KindSucceeded, event.KindFailed,
	event.KindReleased, event.KindReclaimed, event.KindCancelled, event.KindRetried,
	event.KindUnblocked}

// Explain returns why j, as its row says now, was in its state at m; without a state if it did not exist yet.
// For a past moment its cost grows with the jobs that were open then; GroupUsed and Groups are not known.
func Explain(ctx context.Context, tx *ledger.Tx, j projection.Job, m projection.Moment) (w Why, err error) {
	var events []event.Event
	if !m.IsNow() {
		if j, events, err = projection.JobAsOf(ctx, tx, j.N, m); err != nil || len(events) == 0 {
			return w, err
		}
	}
	w.Job = j
	f := ledger.Filter{Job: j.N, Kinds: causes, Until: m.Pos, Last: true}
	if w.Cause, _, err = tx.OneEvent(ctx, f); err != nil {
		return w, err
	}
	if !j.State.Held() && j.Attempt > 0 {
		lost, ok, err := projection.LastLostClaim(ctx, tx, j, m)
		if err != nil {
			return w, err
		}
		if ok {
			w.Lost = &lost
		}
	}
	switch {
	case j.State == event.Queued:
		err = w.queued(ctx, tx, m)
	case j.State == event.Blocked && m.IsNow():
		w.Waits, err = waitsNow(ctx, tx, j)
	case j.State == event.Blocked:
		w.Waits, err = waitsThen(ctx, tx, j, events, m)
	}
	return w, err
}

// queued adds what keeps a queued job waiting.
func (w *Why) queued(ctx context.Context, tx *ledger.Tx, m projection.Moment) error {
	j := w.Job
	e, moved, err := tx.OneEvent(ctx, ledger.Filter{Job: j.N, Kinds: []event.Kind{event.KindRescheduled},
		After: w.Cause.Pos, Until: m.Pos, Last: true})
	if err != nil {
		return err
	}
	if moved {
		w.Moved = &e
	}
	l, err := lookAt(ctx, tx, m)
	if err != nil {
		return err
	}
	known, err := l.known(ctx, tx)
	if err != nil {
		return err
	}
	w.Queue = projection.Queue{Name: j.Queue}
	if i := slices.IndexFunc(known, func(q projection.Queue) bool { return q.Name == j.Queue }); i >= 0 {
		w.Queue = known[i]
	}
	if w.Limit, err = l.limit(ctx, tx, j.Queue); err != nil {
		return err
	}
	if w.Limit.Active() {
		held, err := l.held(ctx, tx)
		if err != nil {
			return err
		}
		w.Holders = slices.DeleteFunc(held, func(o projection.Job) bool { return o.Queue != j.Queue })
	}
	if w.Ahead, w.Higher, err = l.before(ctx, tx, j); err != nil {
		return err
	}
	if m.IsNow() && j.Group != "" {
		if w.Limit.GroupRate(j.Group).N > 0 {
			if w.GroupUsed, err = limit.GroupUsed(ctx, tx, j.Queue, j.Group); err != nil {
				return err
			}
		}
		base, _, _ := group.Split(projection.LaneOf(j))
		if w.Groups, err = group.Ahead(ctx, tx, base, j.Group); err != nil {
			return err
		}
	}
	workforce, err := l.workforce(ctx, tx)
	w.Live, w.Service = workforce.Present(), workforce.ServiceOf(j.Queue, j.Version, j.Requires)
	return err
}
