package export

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger"
	"jobledger/projection"
)

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
