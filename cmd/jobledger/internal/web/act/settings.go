package act

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// Setting is a new setting of a queue, and the state from which it may be made. Seen has the positions of the
// event that set it last, or 0 for none; nil: whatever it is.
type Setting struct {
	Queue  string
	Group  string // of limits: the exception of this group; "": those of the queue
	Reason string
	Seen   []int64
}

// SetAt returns the last event of a kind that says something of a queue, up to a position; 0: to the end. The
// zero event: there is none.
func SetAt(ctx context.Context, tx *ledger.Tx, kind event.Kind, queue string, until int64) (e event.Event,
	err error) {
	f := ledger.Filter{Kinds: []event.Kind{kind}, Queue: queue, Until: until, Last: true}
	e, _, err = tx.OneEvent(ctx, f)
	return e, err
}

// change carries out one change of a queue, unless what it changes has been set since the caller saw it.
func (a *Acts) change(ctx context.Context, s Setting, kind event.Kind,
	do func(service *commands.Service, actor string) (bool, error)) (changed bool, err error) {
	if err := check(ctx, door.Operate, s.Queue); err != nil {
		return false, err
	}
	service := *a.Service
	service.If = func(ctx context.Context, tx *ledger.Tx) error {
		if s.Seen == nil {
			return nil
		}
		last, err := SetAt(ctx, tx, kind, s.Queue, 0)
		return cmp.Or(err, unlessSeen(last, s.Seen))
	}
	return do(&service, door.CallerOf(ctx).Actor)
}

// unlessSeen is the error unless the caller has seen the last event that set something.
func unlessSeen(last event.Event, seen []int64) error {
	if slices.Contains(seen, last.Pos) {
		return nil
	}
	p := door.Refusal(http.StatusPreconditionFailed, "moved_on", "no event has set this: nothing was changed")
	if p.Pos = last.Pos; last.Pos > 0 {
		p.Detail = fmt.Sprintf("%s has set this since you saw it, at pos %d (%s): nothing was changed", last.Actor,
			last.Pos, words.Describe(last, time.UTC))
	}
	return p
}

// Limit sets what bounds a queue; the zero Spec takes that away. changed is false if nothing had to change.
func (a *Acts) Limit(ctx context.Context, s Setting, to limit.Spec) (changed bool, err error) {
	return a.change(ctx, s, event.KindQueueLimited, func(on *commands.Service, actor string) (bool, error) {
		return on.Limit(ctx, actor, s.Queue, to, s.Reason)
	})
}

// LimitGroup sets what bounds one group of a queue; the zero GroupSpec takes that away.
func (a *Acts) LimitGroup(ctx context.Context, s Setting, to limit.GroupSpec) (changed bool, err error) {
	return a.change(ctx, s, event.KindQueueLimited, func(on *commands.Service, actor string) (bool, error) {
		return on.LimitGroup(ctx, actor, s.Queue, s.Group, to, s.Reason)
	})
}

// Defaults sets what the jobs of a queue get that set nothing themselves; the zero Spec takes that away.
func (a *Acts) Defaults(ctx context.Context, s Setting, to defaults.Spec) (changed bool, err error) {
	return a.change(ctx, s, event.KindQueueDefaults, func(on *commands.Service, actor string) (bool, error) {
		return on.SetDefaults(ctx, actor, s.Queue, to, s.Reason)
	})
}

// limitNow is what bounds a queue now, and the position of the event that set it last.
func (a *Acts) limitNow(ctx context.Context, queue string) (l status.Limited, pos int64, err error) {
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		if l, err = status.LimitsOf(ctx, tx, queue, projection.Now(a.Now())); err != nil {
			return err
		}
		last, err := SetAt(ctx, tx, event.KindQueueLimited, queue, 0)
		pos = last.Pos
		return err
	})
	return l, pos, err
}

// defaultsNow is likewise what the jobs of a queue get by default.
func (a *Acts) defaultsNow(ctx context.Context, queue string) (d defaults.Defaults, pos int64, err error) {
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		set, err := defaults.Current(ctx, tx)
		if err != nil {
			return err
		}
		d = set[queue]
		d.Queue = queue
		last, err := SetAt(ctx, tx, event.KindQueueDefaults, queue, 0)
		pos = last.Pos
		return err
	})
	return d, pos, err
}
