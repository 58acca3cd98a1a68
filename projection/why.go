package projection

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Why holds what explains the state of a job.
type Why struct {
	Job    Job
	Cause  event.Event  // the event that led to its state
	Moved  *event.Event // the last rescheduled since then; nil: none
	Queue  Queue
	Ahead  int64    // jobs of its lane that come first, ready or not
	Higher int64    // ready jobs of its queue with a higher priority
	Live   []Worker // the live worker processes
	Service
}

// causes are the kinds that bring a job into a state: those of transitions, without rescheduled and
// heartbeat.
var causes = []event.Kind{event.KindEnqueued, event.KindClaimed, event.KindSucceeded, event.KindFailed,
	event.KindReleased, event.KindReclaimed, event.KindCancelled, event.KindRetried}

// Explain returns why j, as its row says now, is in its state.
func Explain(ctx context.Context, tx *ledger.Tx, j Job, now time.Time) (w Why, err error) {
	w.Job = j
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: causes, Limit: 1, Last: true}) {
		if err != nil {
			return w, err
		}
		w.Cause = e
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
	if w.Queue, err = GetQueue(ctx, tx, j.Queue); err != nil {
		return w, err
	}
	err = table.ScanOne(ctx, tx, aheadInLane, []any{&w.Ahead}, laneOf(j), event.Micros(j.RunAt), string(j.ID))
	if err != nil {
		return w, err
	}
	from, _ := laneBounds(j.Queue)
	err = table.ScanOne(ctx, tx, readyBetween, []any{&w.Higher}, from, from+rank(j.Priority), event.Micros(now))
	if err != nil {
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
func ExplainAsOf(ctx context.Context, tx *ledger.Tx, n int64, m Moment) (w Why, err error) {
	j, events, err := JobAsOf(ctx, tx, n, m)
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
	if j.State != event.Queued {
		return w, nil
	}
	queues, err := QueuesAsOf(ctx, tx, m)
	if err != nil {
		return w, err
	}
	w.Queue = Queue{Name: j.Queue}
	for _, q := range queues {
		if q.Name == j.Queue {
			w.Queue = q
		}
	}
	open, err := openJobsAsOf(ctx, tx, m)
	if err != nil {
		return w, err
	}
	for _, o := range open {
		switch {
		case o.State != event.Queued || o.Queue != j.Queue || o.N == j.N:
		case laneOf(o) == laneOf(j) && cmp.Or(o.RunAt.Compare(j.RunAt), strings.Compare(string(o.ID),
			string(j.ID))) < 0:
			w.Ahead++
		case o.Priority > j.Priority && !o.RunAt.After(m.At):
			w.Higher++
		}
	}
	workforce, err := workforceAsOf(ctx, tx, heldOfJobs(open), m)
	if err != nil {
		return w, err
	}
	w.Live, w.Service = workforce.Present(), workforce.ServiceOf(j.Queue, j.Version, j.Requires)
	return w, nil
}

// Both read the index ready.
const (
	aheadInLane  = `SELECT count(*) FROM jobs WHERE lane = ? AND (run_at, id) < (?, ?)`
	readyBetween = `SELECT count(*) FROM jobs WHERE lane >= ? AND lane < ? AND run_at <= ?`
)
