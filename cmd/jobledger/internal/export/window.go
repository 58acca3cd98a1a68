package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// stretch is a part of the ledger, its ends included.
type stretch struct {
	after, until int64     // it begins behind the one pos and ends with the other
	from, to     time.Time // the moments that were named, or those of its first and last event
}

// empty says whether there is no event in it.
func (s stretch) empty() bool { return s.until <= s.after }

// touches says whether claim was live at some time within s. The walk must not go beyond s.until.
func (s stretch) touches(claim *projection.Claim) bool {
	return claim.End == nil || claim.End.Pos > s.after
}

// stretchOf reads --from and --to. Without them it is the ledger as it is now.
func (p *program) stretchOf(c *cli.Context, tx *ledger.Tx) (s stretch, err error) {
	if err := p.checkOrder(c); err != nil {
		return s, err
	}
	if s.until, err = tx.Tail(c.Context); err != nil {
		return s, err
	}
	tail := s.until
	if w, given, err := p.whenOf(c, "from"); err != nil {
		return s, err
	} else if given {
		if s.after, err = posOf(c.Context, tx, w, true); err != nil {
			return s, err
		}
		s.from = w.Time
	}
	if w, given, err := p.whenOf(c, "to"); err != nil {
		return s, err
	} else if given {
		if s.until, err = posOf(c.Context, tx, w, false); err != nil {
			return s, err
		}
		s.until, s.to = min(s.until, tail), w.Time
	}
	if s.from.IsZero() {
		s.from, err = timeAt(c.Context, tx, min(s.after+1, tail))
	}
	if s.to.IsZero() && err == nil {
		s.to, err = timeAt(c.Context, tx, s.until)
	}
	return s, err
}

// posOf returns the last pos that is not behind w; with before, the last that is before it.
func posOf(ctx context.Context, tx *ledger.Tx, w when, before bool) (int64, error) {
	switch {
	case w.ByPos && before:
		return max(w.Pos-1, 0), nil
	case w.ByPos:
		return w.Pos, nil
	case before:
		return tx.PosAt(ctx, w.Time.Add(-1))
	}
	return tx.PosAt(ctx, w.Time)
}

// timeAt returns the time of the event at pos; zero if there is none.
func timeAt(ctx context.Context, tx *ledger.Tx, pos int64) (t time.Time, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{After: pos - 1, Until: pos}) {
		return e.At, err
	}
	return t, nil
}

// walk tells fn the events from the first one to pos until, each with the queue of its job, in short reads.
func walk(ctx context.Context, service *commands.Service, until int64, fn func(e ledger.Event, queue string) error) error {
	if until == 0 { // to a filter that means no end
		return nil
	}
	queues := projection.QueuesOf{Look: func(n int64) (queue string, err error) {
		err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
			queue, err = projection.QueueAt(ctx, tx, n)
			return err
		})
		return queue, err
	}}
	for line, err := range service.Store.Lines(ctx, ledger.Filter{Until: until}, false) {
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

// walkClaims tells fn each claim that was live within s: the ended ones in the order in which they ended, then the
// live ones. watch, if not nil, is told each event before, from the first one on, with the claim that it concerns.
func walkClaims(ctx context.Context, service *commands.Service, s stretch, watch func(e ledger.Event, claim *projection.Claim) error, fn func(*projection.Claim) error) error {
	var claims projection.Claims
	err := walk(ctx, service, s.until, func(e ledger.Event, queue string) error {
		claim := claims.Add(e, queue)
		if watch != nil {
			if err := watch(e, claim); err != nil {
				return err
			}
		}
		if claim != nil && claim.End != nil && s.touches(claim) {
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
