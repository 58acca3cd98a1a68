package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// operatorKinds are what operators do. Jobs are cancelled and retried because of other jobs too.
var operatorKinds = []event.Kind{event.KindCancelled, event.KindRetried, event.KindRescheduled,
	event.KindErased, event.KindQueuePaused, event.KindQueueResumed, event.KindRebuilt, event.KindRestored,
	event.KindQueueLimited, event.KindScheduleSet, event.KindSchedulePaused, event.KindScheduleResumed,
	event.KindScheduleRemoved, event.KindQueueDefaults}

// maxActEvents is how many events of operators are looked at, the last ones.
const maxActEvents = 1000

// OperatorAct is what an operator did: one event, or several of one kind for one reason within a minute of
// each other, such as the jobs of one command.
type OperatorAct struct {
	event.Event // the last of them
	Count       int
	Begin       time.Time // of the first of them
}

// OperatorActs returns what operators did, of the events that f selects, at most so many acts, the newest
// first.
func OperatorActs(ctx context.Context, tx *ledger.Tx, f ledger.Filter, most int) (acts []OperatorAct,
	err error) {
	f.Kinds, f.Last, f.Limit = operatorKinds, true, maxActEvents
	var found []event.Event
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		if _, because := reasonOf(e); because == "" {
			found = append(found, e)
		}
	}
	for _, e := range slices.Backward(found) {
		reason, _ := reasonOf(e)
		if n := len(acts); n > 0 && e.N != 0 {
			last := &acts[n-1]
			if same, _ := reasonOf(last.Event); last.Kind() == e.Kind() && last.Actor == e.Actor &&
				last.Begin.Sub(e.At) < time.Minute && same == reason {
				last.Count, last.Begin = last.Count+1, e.At
				continue
			}
		}
		if len(acts) == most {
			break
		}
		acts = append(acts, OperatorAct{Event: e, Count: 1, Begin: e.At})
	}
	return acts, nil
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
		return kind + " " + render.Count(int64(a.Count), "job")
	}
	return kind + " a job"
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
	case *event.QueueDefaults:
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
