package export

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
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

// EachEvent calls fn with the events of w, each with the queue of its job, which is empty for events of no
// job. Before them, seed gets the transitions that led to the jobs open at w.After, job by job; nil if the
// caller needs none. Its cost grows with these jobs and the events of w, not with earlier events. It stops at
// the first error of fn or seed and returns it.
func EachEvent(
	ctx context.Context, store *ledger.Store, w Window, seed, fn func(e event.Event, queue string) error,
) error {
	walk := walk{store: store}
	if _, err := walk.begin(ctx, w.After, seed); err != nil {
		return err
	}
	return walk.each(ctx, w, fn)
}

// walk goes along the events of a window.
type walk struct {
	store  *ledger.Store
	queues follow.QueuesOf
}

// begin prepares for the events after the pos after, and returns the time of the event there.
func (k *walk) begin(
	ctx context.Context, after int64, seed func(e event.Event, queue string) error,
) (at time.Time, err error) {
	if after > 0 {
		err = k.store.Read(ctx, func(tx *ledger.Tx) error {
			k.queues = follow.QueuesOf{Find: func(n int64) (string, error) {
				return follow.QueueAt(ctx, tx, n)
			}}
			m, err := projection.AtPos(ctx, tx, after)
			if err != nil {
				return err
			}
			at = m.At
			for e, err := range projection.OpenEvents(ctx, tx, m) {
				if err != nil {
					return err
				}
				queue, err := k.queues.Add(e)
				if err == nil && seed != nil {
					err = seed(e, queue)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	k.queues.Find = func(n int64) (queue string, err error) {
		return ledger.Read(ctx, k.store, func(tx *ledger.Tx) (string, error) {
			return follow.QueueAt(ctx, tx, n)
		})
	}
	return at, err
}

// each calls fn with the events of w, to whose beginning begin has led.
func (k *walk) each(ctx context.Context, w Window, fn func(e event.Event, queue string) error) error {
	if w.Empty() { // in a filter, until 0 means no end
		return nil
	}
	for line, err := range linesOf(ctx, k.store, w, false) {
		if err != nil {
			return err
		}
		queue, err := k.queues.Add(line.Event)
		if err != nil {
			return err
		}
		if err := fn(line.Event, queue); err != nil {
			return err
		}
	}
	return nil
}

// claimVisitor sees the claims and events of a window.
type claimVisitor interface {
	// begin gets the claims that were live before the first event of the window, the oldest first, and the
	// time of the event before it, which is zero if there is none.
	begin(live []*follow.Claim, at time.Time)
	// watch gets every event of the window, with the claim that it concerns, if any.
	watch(e event.Event, claim *follow.Claim) error
}

// eachClaim calls fn with each claim that was live within w: the ended ones in the order in which they ended,
// then those that are still live. v, if not nil, hears of every event before fn does.
func eachClaim(
	ctx context.Context, store *ledger.Store, w Window, v claimVisitor, fn func(*follow.Claim) error,
) error {
	var claims follow.Claims
	walk := walk{store: store}
	from := Window{After: min(w.After, w.Until), Until: w.Until}
	at, err := walk.begin(ctx, from.After, func(e event.Event, queue string) error {
		claims.Add(e, queue)
		return nil
	})
	if err != nil {
		return err
	}
	if v != nil {
		v.begin(claims.Live(), at)
	}
	err = walk.each(ctx, from, func(e event.Event, queue string) error {
		claim := claims.Add(e, queue)
		if v != nil {
			if err := v.watch(e, claim); err != nil {
				return err
			}
		}
		if claim != nil && claim.End != nil {
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

// Between returns the events from one moment to another, both included. Without from it begins with the
// ledger; without to it ends with the ledger as it is now.
func Between(ctx context.Context, tx *ledger.Tx, from, to *when.When) (w Window, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return w, err
	}
	w.Until = tail
	if from == nil {
		err = projection.AfterHorizon(ctx, tx, 0)
	}
	if err != nil {
		return w, err
	}
	if from != nil {
		if w.After, err = from.Position(ctx, tx, true); err != nil {
			return w, err
		}
		w.From = from.Time
	}
	if to != nil {
		if w.Until, err = to.Position(ctx, tx, false); err != nil {
			return w, err
		}
		w.Until, w.To = min(w.Until, tail), to.Time
	}
	if w.From.IsZero() {
		w.From, err = TimeAt(ctx, tx, min(w.After+1, tail))
	}
	if w.To.IsZero() && err == nil {
		w.To, err = TimeAt(ctx, tx, w.Until)
	}
	return w, err
}

// TimeAt returns the time of the event at pos, or the zero time if there is none.
func TimeAt(ctx context.Context, tx *ledger.Tx, pos int64) (t time.Time, err error) {
	e, _, err := tx.EventAt(ctx, pos)
	return e.At, err
}
