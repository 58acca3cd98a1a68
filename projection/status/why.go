package status

import (
	"cmp"
	"context"
	"slices"
	"time"

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
	// GroupUsed is until when, in microseconds, the starts of its group use up the rate of that; 0: there were
	// none, or that is not known.
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
	if j.State == event.Blocked {
		w.Waits, err = waitsNow(ctx, tx, j)
	}
	if j.State != event.Queued {
		return w, err
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
	if w.Limit, err = limit.Of(ctx, tx, j.Queue); err != nil {
		return w, err
	}
	if w.Limit.GroupRate(j.Group).N > 0 {
		if w.GroupUsed, err = limit.GroupUsed(ctx, tx, j.Queue, j.Group); err != nil {
			return w, err
		}
	}
	if w.Limit.Active() {
		held, err := projection.AllHeld(ctx, tx)
		if err != nil {
			return w, err
		}
		w.Holders = slices.DeleteFunc(held, func(o projection.Job) bool { return o.Queue != j.Queue })
	}
	if w.Ahead, w.Higher, err = JobsBefore(ctx, tx, j, now); err != nil {
		return w, err
	}
	if j.Group != "" {
		base, _, _ := group.Split(projection.LaneOf(j))
		if w.Groups, err = group.Ahead(ctx, tx, base, j.Group); err != nil {
			return w, err
		}
	}
	l := look{at: projection.Now(now)}
	workforce, err := l.workforce(ctx, tx)
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
	if j.State == event.Blocked {
		w.Waits, err = waitsThen(ctx, tx, j, events, m)
	}
	if j.State != event.Queued {
		return w, err
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
	limits, err := limit.AsOf(ctx, tx, m.Pos)
	if err != nil {
		return w, err
	}
	if w.Limit = limits[j.Queue]; w.Limit.Active() {
		w.Holders = holders(open, j.Queue)
	}
	w.Ahead, w.Higher = JobsBeforeAmong(open, j, m.At)
	l := look{at: m, open: open}
	workforce, err := l.workforce(ctx, tx)
	if err != nil {
		return w, err
	}
	w.Live, w.Service = workforce.Present(), workforce.ServiceOf(j.Queue, j.Version, j.Requires)
	return w, nil
}

// holders returns those of jobs that hold a slot of the queue, the oldest claim first.
func holders(jobs map[int64]projection.Job, queue string) (held []projection.Job) {
	for _, j := range jobs {
		if j.Queue == queue && j.State.Held() {
			held = append(held, j)
		}
	}
	slices.SortFunc(held, func(a, b projection.Job) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.N, b.N))
	})
	return held
}
