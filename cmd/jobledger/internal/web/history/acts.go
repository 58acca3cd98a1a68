package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// operatorKinds are what operators do. Jobs are cancelled and retried because of other jobs too.
var operatorKinds = event.KindsThat(event.Kind.OfOperator)

// How many events of operators are looked at, the last ones, and how many are read at a time.
const (
	maxActEvents = 20_000
	actPage      = 1000
)

// OperatorAct is what an operator did: one event, or several of one kind for one reason within a minute of
// each other, such as the jobs of one command. A command that retries jobs and spreads them is one act.
type OperatorAct struct {
	event.Event // the last of them
	Count       int
	Begin       time.Time     // of the first of them
	Spread      time.Duration // of jobs that were retried: from when the first one may run to the last

	jobs        map[int64]int64 // of rescheduled: when they are to run, in microseconds, by number
	early, late int64           // of retried: when those that were spread are to run
}

// Acts are what operators did, the newest first.
type Acts struct {
	List  []OperatorAct
	More  int  // so many came before
	Older bool // and others that were not looked at
}

// Rest says how many acts came before those listed; "": none.
func (a Acts) Rest() string {
	switch {
	case a.More == 0 && !a.Older:
		return ""
	case a.Older:
		return fmt.Sprintf("and at least %d more before", a.More)
	}
	return fmt.Sprintf("and %d more before", a.More)
}

// actKey is what the events of one act have in common.
type actKey struct {
	kind          event.Kind
	actor, reason string
}

// OperatorActs returns what operators did, of the events that f selects, at most so many acts.
func OperatorActs(ctx context.Context, tx *ledger.Tx, f ledger.Filter, most int) (acts Acts, err error) {
	var all []*OperatorAct
	recent := make(map[actKey]*OperatorAct)
	f.Kinds, f.Last, f.Limit = operatorKinds, true, actPage
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
			if act := addAct(recent, e); act != nil {
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
		case len(acts.List) < most:
			act.Spread = time.Duration(act.late-act.early) * time.Microsecond
			acts.List = append(acts.List, *act)
		default:
			acts.More++
		}
	}
	return acts, nil
}

// addAct adds e to the act that it belongs to, or returns a new one. The events come from the last to the
// first, so that of a job that is retried and spread, rescheduled comes first.
func addAct(recent map[actKey]*OperatorAct, e event.Event) (added *OperatorAct) {
	reason, because := reasonOf(e)
	if because != "" {
		return nil
	}
	key := actKey{e.Kind(), e.Actor, reason}
	act := recent[key]
	if act == nil || e.N == 0 || act.Begin.Sub(e.At) >= time.Minute {
		act = &OperatorAct{Event: e, jobs: make(map[int64]int64)}
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

// Words is what was done, to what, in a few words: paused mail.
func (a *OperatorAct) Words() string {
	kind := a.Kind().String()
	for _, about := range []string{"queue_", "schedule_"} {
		if verb, ok := strings.CutPrefix(kind, about); ok {
			return strings.TrimSuffix(verb+" "+objectOf(a.Event), " ")
		}
	}
	switch {
	case a.N == 0:
		return kind
	case a.Count > 1:
		kind += " " + render.Count(int64(a.Count), "job")
	default:
		kind += " a job"
	}
	if a.Spread >= time.Second {
		kind += ", spread over " + render.Roughly(a.Spread)
	}
	return kind
}

// objectOf is the queue, or the schedule, that something was done to.
func objectOf(e event.Event) string {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		return b.Queue
	case *event.QueueResumed:
		return b.Queue
	case *event.QueueLimited:
		return b.Queue
	case *event.QueueDefaults:
		return "of " + b.Queue
	}
	if name := schedules.Of(e.Body); name != "" {
		return "schedule " + name
	}
	return ""
}

// reasonOf is the reason for what was done, and the job because of which it was; "": an operator did it.
func reasonOf(e event.Event) (reason string, because event.JobID) {
	switch b := e.Body.(type) {
	case *event.Cancelled:
		return b.Reason, b.Because
	case *event.Retried:
		return b.Reason, b.Because
	case *event.Rescheduled:
		return b.Reason, ""
	case *event.Erased:
		return b.Reason, ""
	case *event.QueuePaused:
		return b.Reason, ""
	case *event.QueueResumed:
		return b.Reason, ""
	case *event.QueueLimited:
		return b.Reason, ""
	case *event.QueueDefaults:
		return b.Reason, ""
	case *event.ScheduleSet:
		return b.Reason, ""
	case *event.SchedulePaused:
		return b.Reason, ""
	case *event.ScheduleResumed:
		return b.Reason, ""
	case *event.ScheduleRemoved:
		return b.Reason, ""
	}
	return "", ""
}
