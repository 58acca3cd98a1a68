package export

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Window is a range of events: those with After < pos <= Until. The zero value is empty.
type Window struct {
	After, Until int64

	// From and To are the times that the range stands for: those that the user named, or the times of its first
	// and last event. The functions of this package do not use them.
	From, To time.Time
}

// Empty reports whether there is no event in w.
func (w Window) Empty() bool { return w.Until <= w.After }

// touches reports whether claim was live at some time within w. The walk must not have gone beyond w.Until.
func (w Window) touches(claim *projection.Claim) bool {
	return claim.End == nil || claim.End.Pos > w.After
}

// EachEvent calls fn with the events from the first one to pos until, each with the queue of its job, which
// is empty for events of no job. It stops at the first error of fn and returns it.
func EachEvent(
	ctx context.Context, store *ledger.Store, until int64, fn func(e event.Event, queue string) error,
) error {
	if until == 0 { // in a filter 0 means no end
		return nil
	}
	queues := projection.QueuesOf{Find: func(n int64) (queue string, err error) {
		err = store.Read(ctx, func(tx *ledger.Tx) error {
			queue, err = projection.QueueAt(ctx, tx, n)
			return err
		})
		return queue, err
	}}
	for line, err := range store.Lines(ctx, ledger.Filter{Until: until}, false) {
		if err != nil {
			return err
		}
		queue, err := queues.Add(line.Event)
		if err != nil {
			return err
		}
		if err := fn(line.Event, queue); err != nil {
			return err
		}
	}
	return nil
}

// eachClaim calls fn with each claim that was live within w: the ended ones in the order in which they ended,
// then those that are still live. before, if not nil, gets every event from the first one on ahead of fn,
// with the claim that the event concerns.
func eachClaim(
	ctx context.Context, store *ledger.Store, w Window,
	before func(e event.Event, claim *projection.Claim) error, fn func(*projection.Claim) error,
) error {
	var claims projection.Claims
	err := EachEvent(ctx, store, w.Until, func(e event.Event, queue string) error {
		claim := claims.Add(e, queue)
		if before != nil {
			if err := before(e, claim); err != nil {
				return err
			}
		}
		if claim != nil && claim.End != nil && w.touches(claim) {
			return fn(claim)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, claim := range claims.Live() {
		if err := fn(claim); err != nil {
			return err
		}
	}
	return nil
}
