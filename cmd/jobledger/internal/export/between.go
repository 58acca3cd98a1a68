package export

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands/archive"
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

// BetweenWithArchive is Between where the archive is in the folder dir, so that the moments may be of events
// that have left the ledger. The times of w are left out unless they are named.
func BetweenWithArchive(ctx context.Context, store *ledger.Store, dir string, from, to *when.When) (
	w Window, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		w.Until, err = tx.Tail(ctx)
		return err
	})
	tail := w.Until
	if from != nil && err == nil {
		if w.After = max(from.Pos-1, 0); !from.ByPos {
			w.From = from.Time
			w.After, err = archive.PosAt(ctx, store, dir, from.Time.Add(-1))
		}
	}
	if to != nil && err == nil {
		if w.Until = to.Pos; !to.ByPos {
			w.To = to.Time
			w.Until, err = archive.PosAt(ctx, store, dir, to.Time)
		}
	}
	w.Until = min(w.Until, tail)
	return w, err
}

// TimeAt returns the time of the event at pos, or the zero time if there is none.
func TimeAt(ctx context.Context, tx *ledger.Tx, pos int64) (t time.Time, err error) {
	e, _, err := tx.EventAt(ctx, pos)
	return e.At, err
}
