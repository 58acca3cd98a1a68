package main

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/timespec"
	"jobledger/ledger"
)

// windowOf reads --from and --to. Without them it is the whole ledger as it is now.
func (p *program) windowOf(c *cli.Context, tx *ledger.Tx) (w export.Window, err error) {
	if err := p.CheckFromTo(c); err != nil {
		return w, err
	}
	if w.Until, err = tx.Tail(c.Context); err != nil {
		return w, err
	}
	tail := w.Until
	if moment, given, err := p.WhenFlag(c, "from"); err != nil {
		return w, err
	} else if given {
		if w.After, err = posOf(c.Context, tx, moment, true); err != nil {
			return w, err
		}
		w.From = moment.Time
	}
	if moment, given, err := p.WhenFlag(c, "to"); err != nil {
		return w, err
	} else if given {
		if w.Until, err = posOf(c.Context, tx, moment, false); err != nil {
			return w, err
		}
		w.Until, w.To = min(w.Until, tail), moment.Time
	}
	if w.From.IsZero() {
		w.From, err = timeAt(c.Context, tx, min(w.After+1, tail))
	}
	if w.To.IsZero() && err == nil {
		w.To, err = timeAt(c.Context, tx, w.Until)
	}
	return w, err
}

// posOf returns the pos of the last event that is not later than w, or with before of the last that is
// earlier.
func posOf(ctx context.Context, tx *ledger.Tx, w timespec.When, before bool) (int64, error) {
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

// timeAt returns the time of the event at pos, or the zero time if there is none.
func timeAt(ctx context.Context, tx *ledger.Tx, pos int64) (t time.Time, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{After: pos - 1, Until: pos}) {
		return e.At, err
	}
	return t, nil
}
