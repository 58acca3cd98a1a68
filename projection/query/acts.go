package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// operatorKinds are what operators do. Jobs are cancelled and retried because of other jobs too.
var operatorKinds = event.KindsThat(event.Kind.OfOperator)

// How many events of operators are looked at, the last ones, and how many are read at a time.
const (
	maxActEvents = 20_000
	actPage      = 1000
)

// Acts asks what operators did within a window: to the queue of the span and its jobs, or to all.
type Acts struct {
	Span
	Limit   int  // at most so many, the last ones
	ByQueue bool // what was done to jobs of different queues is not one act
}

// Act is what an operator did: one event, or several of one kind by one actor for one reason within a minute
// of each other, such as the jobs of one command. A command that retries jobs and spreads them is one act.
type Act struct {
	event.Event // the last of them
	Reason      string
	Queue       string // of the jobs, with [Acts.ByQueue]
	Count       int
	Begin       time.Time     // of the first of them
	Spread      time.Duration // of jobs that were retried: from when the first one may run to the last

	jobs        map[int64]int64 // of rescheduled: when they are to run, in microseconds, by number
	early, late int64           // of retried: when those that were spread are to run
}

// ActList is the answer to [Acts].
type ActList struct {
	List  []Act // the newest first
	More  int   // so many came before
	Older bool  // and others that were not looked at
}

// actKey has the fields that the events of one act share.
type actKey struct {
	kind                 event.Kind
	actor, reason, queue string
}

// Read returns the acts. It reads the last events of operators, up to 20,000.
func (q Acts) Read(ctx context.Context, tx *ledger.Tx) (acts ActList, err error) {
	if q.To.Pos <= q.From.Pos {
		return acts, nil
	}
	var all []*Act
	recent := make(map[actKey]*Act)
	f := ledger.Filter{After: q.From.Pos, Until: q.To.Pos, Queue: q.Queue, Kinds: operatorKinds, Last: true,
		Limit: actPage}
	for read := 0; ; read += actPage {
		if acts.Older = read >= maxActEvents; acts.Older {
			break
		}
		var page []event.Event
		for e, err := range tx.Events(ctx, f) {
			if err != nil {
				return acts, err
			}
			page = append(page, e)
		}
		for _, e := range slices.Backward(page) {
			queue := ""
			if q.ByQueue && e.N != 0 {
				if queue, err = follow.QueueAt(ctx, tx, e.N); err != nil {
					return acts, err
				}
			}
			if act := addAct(recent, e, queue); act != nil {
				all = append(all, act)
			}
		}
		if len(page) < actPage {
			break
		}
		f.Until = page[0].Pos - 1
	}
	for _, act := range all {
		switch {
		case act.Count == 0: // its events belong to retries
		case len(acts.List) < q.Limit:
			act.Spread = time.Duration(act.late-act.early) * time.Microsecond
			acts.List = append(acts.List, *act)
		default:
			acts.More++
		}
	}
	return acts, nil
}

// ActFrom returns the act of which the event pos is the first, up to another position. Its Count is 0 if that
// event is not part of an act. Up to 20,000 events of operators are read, the last ones.
func ActFrom(ctx context.Context, tx *ledger.Tx, pos, to int64) (act Act, err error) {
	e, found, err := tx.EventAt(ctx, pos)
	if err != nil || !found {
		return act, err
	}
	q := Acts{Limit: maxActEvents}
	q.From.Pos, q.To.Pos = pos-1, to
	acts, err := q.Read(ctx, tx)
	for _, a := range acts.List {
		if a.Kind() == e.Kind() && a.Actor == e.Actor && a.Reason == event.Said(e.Body, "reason") {
			act = a // the last of the list is the first that happened
		}
	}
	return act, err
}

// addAct adds e to the act that it belongs to, or returns a new one. The events come from the last to the
// first, so that of a job that is retried and spread, rescheduled comes first.
func addAct(recent map[actKey]*Act, e event.Event, queue string) (added *Act) {
	if event.Said(e.Body, "because") != "" { // another job did it
		return nil
	}
	key := actKey{e.Kind(), e.Actor, event.Said(e.Body, "reason"), queue}
	act := recent[key]
	if act == nil || e.N == 0 || act.Begin.Sub(e.At) >= time.Minute {
		act = &Act{Event: e, Reason: key.reason, Queue: queue, jobs: make(map[int64]int64)}
		recent[key], added = act, act
	}
	act.Count, act.Begin = act.Count+1, e.At
	switch b := e.Body.(type) {
	case *event.Rescheduled:
		act.jobs[e.N] = event.Micros(b.RunAt)
	case *event.Retried:
		key.kind = event.KindRescheduled
		later := recent[key]
		if later == nil || later.Begin.Sub(e.At) >= time.Minute {
			break
		}
		if at, spread := later.jobs[e.N]; spread {
			delete(later.jobs, e.N)
			later.Count--
			act.late = max(act.late, at)
			if act.early == 0 || at < act.early {
				act.early = at
			}
		}
	}
	return added
}

// About is the queue or the schedule that something was done to; "": a job, or the ledger.
func (a *Act) About() string {
	if a.N != 0 {
		return ""
	}
	return cmp.Or(event.Said(a.Body, "name"), event.Said(a.Body, "queue")) // the queue of a schedule's jobs, too
}
