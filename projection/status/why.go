package status

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Why holds what explains the state of a job.
type Why struct {
	Job    projection.Job
	Cause  event.Event  // the event that led to its state
	Moved  *event.Event // the last rescheduled since then; nil: none
	Queue  projection.Queue
	Ahead  int64                 // jobs of its lane that come first, ready or not
	Higher int64                 // ready jobs of its queue with a higher priority
	Live   []Worker              // the live worker processes
	Lost   *projection.LostClaim // its last claim, if that is lost and its command may still run; nil: not
	Service
}

// causes are the kinds that bring a job into a state: those of transitions, without rescheduled and
// heartbeat.
var causes = []event.Kind{event.KindEnqueued, event.KindClaimed, event.KindSucceeded, event.KindFailed,
	event.KindReleased, event.KindReclaimed, event.KindCancelled, event.KindRetried}

// Explain returns why j, as its row says now, is in its state.
func Explain(ctx context.Context, tx *ledger.Tx, j projection.Job, now time.Time) (w Why, err error) {
	w.Job = j
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: causes, Limit: 1, Last: true}) {
		if err != nil {
			return w, err
		}
		w.Cause = e
	}
	if !j.State.Held() && j.Attempt > 0 {
		lost, ok, err := projection.LastLostClaim(ctx, tx, j, now)
		if err != nil {
			return w, err
		}
		if ok {
			w.Lost = &lost
		}
	}
	if j.State != event.Queued {
		return w, nil
	}
	f := ledger.Filter{Job: j.N, Kinds: []event.Kind{event.KindRescheduled}, After: w.Cause.Pos, Limit: 1,
		Last: true}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return w, err
		}
		w.Moved = &e
	}
	if w.Queue, err = projection.GetQueue(ctx, tx, j.Queue); err != nil {
		return w, err
	}
	if w.Ahead, w.Higher, err = projection.JobsBefore(ctx, tx, j, now); err != nil {
		return w, err
	}
	workforce, err := WorkforceNow(ctx, tx, now)
	if err != nil {
		return w, err
	}
	w.Live, w.Service = workforce.Present(), workforce.ServiceOf(j.Queue, j.Version, j.Requires)
	return w, nil
}

// ExplainAsOf returns why job n was in its state at m; without a state where it did not exist yet. It costs
// the jobs that were open then.
func ExplainAsOf(ctx context.Context, tx *ledger.Tx, n int64, m projection.Moment) (w Why, err error) {
	j, events, err := projection.JobAsOf(ctx, tx, n, m)
	if err != nil || len(events) == 0 {
		return w, err
	}
	w.Job = j
	for _, e := range events {
		switch {
		case slices.Contains(causes, e.Kind()):
			w.Cause, w.Moved = e, nil
		case e.Kind() == event.KindRescheduled:
			w.Moved = &e
		}
	}
	if !j.State.Held() && j.Attempt > 0 {
		lost, ok, err := projection.LastLostClaimAsOf(ctx, tx, j, m)
		if err != nil {
			return w, err
		}
		if ok {
			w.Lost = &lost
		}
	}
	if j.State != event.Queued {
		return w, nil
	}
	queues, err := projection.QueuesAsOf(ctx, tx, m)
	if err != nil {
		return w, err
	}
	w.Queue = projection.Queue{Name: j.Queue}
	for _, q := range queues {
		if q.Name == j.Queue {
			w.Queue = q
		}
	}
	open, err := projection.OpenJobsAsOf(ctx, tx, m)
	if err != nil {
		return w, err
	}
	w.Ahead, w.Higher = projection.JobsBeforeAmong(open, j, m.At)
	workforce, err := workforceAsOf(ctx, tx, open, m)
	if err != nil {
		return w, err
	}
	w.Live, w.Service = workforce.Present(), workforce.ServiceOf(j.Queue, j.Version, j.Requires)
	return w, nil
}
