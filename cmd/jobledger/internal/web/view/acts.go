package view

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of what the overview lists.
const (
	actsShown = 8
	actsBack  = 24 * time.Hour
)

// operatorKinds are what only operators do.
var operatorKinds = []event.Kind{event.KindCancelled, event.KindRetried, event.KindRescheduled,
	event.KindErased, event.KindQueuePaused, event.KindQueueResumed, event.KindRebuilt, event.KindRestored,
	event.KindQueueLimited, event.KindScheduleSet, event.KindSchedulePaused, event.KindScheduleResumed,
	event.KindScheduleRemoved, event.KindQueueDefaults}

// OperatorAct is what an operator did: one event, or several of one kind for one reason within a minute of
// each other, such as the jobs of one command.
type OperatorAct struct {
	event.Event // the last of them
	Count       int
}

// operatorActs returns the last of the day before now, up to the position until, the newest first.
func operatorActs(ctx context.Context, tx *ledger.Tx, until int64, now time.Time) (acts []OperatorAct,
	err error) {
	if until == 0 {
		return nil, nil
	}
	after, err := tx.PosAt(ctx, now.Add(-actsBack))
	if err != nil {
		return nil, err
	}
	f := ledger.Filter{Kinds: operatorKinds, After: after, Until: until, Last: true, Limit: 1000}
	var found []event.Event
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	var before time.Time // of the event that was looked at last
	for _, e := range slices.Backward(found) {
		n := len(acts)
		if n > 0 && e.N != 0 && acts[n-1].Kind() == e.Kind() && acts[n-1].Actor == e.Actor &&
			before.Sub(e.At) < time.Minute && reasonOf(acts[n-1].Event) == reasonOf(e) {
			acts[n-1].Count++
		} else if n == actsShown {
			break
		} else {
			acts = append(acts, OperatorAct{Event: e, Count: 1})
		}
		before = e.At
	}
	return acts, nil
}

// reasonOf is the reason for what was done to a job.
func reasonOf(e event.Event) string {
	switch b := e.Body.(type) {
	case *event.Cancelled:
		return b.Reason
	case *event.Retried:
		return b.Reason
	case *event.Rescheduled:
		return b.Reason
	case *event.Erased:
		return b.Reason
	}
	return ""
}
