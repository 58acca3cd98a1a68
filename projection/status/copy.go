package status

import (
	"context"
	"errors"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Copy is the moment of a ledger that is a copy, and the ledger that was copied.
type Copy struct {
	projection.Moment
	From string
}

// CopyOf reports whether the ledger of tx is a copy as of a moment that has not been written to since. Then
// questions about now are questions about that moment: the event imported, and the pauses that came with it,
// are ignored. A ledger whose last events cannot be read does not count as a copy.
func CopyOf(ctx context.Context, tx *ledger.Tx) (c Copy, ok bool, err error) {
	f := ledger.Filter{Last: true}
	mark, _, err := tx.OneEvent(ctx, f)
	if _, paused := mark.Body.(*event.QueuePaused); paused && err == nil {
		f.Kinds = []event.Kind{event.KindImported}
		mark, _, err = tx.OneEvent(ctx, f)
	}
	var body *event.Imported
	if err == nil {
		body, _ = mark.Body.(*event.Imported)
	}
	if body == nil || body.AsOf.IsZero() {
		if errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnknownKind) {
			err = nil
		}
		return Copy{}, false, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{After: mark.Pos}) {
		if err != nil {
			return Copy{}, false, err
		}
		if e.Kind() != event.KindQueuePaused || e.Actor != mark.Actor || !e.At.Equal(mark.At) {
			return Copy{}, false, nil // of another transaction than the one that made the copy
		}
	}
	m, err := projection.AtPos(ctx, tx, body.Events)
	m.At = body.AsOf
	return Copy{Moment: m, From: body.From}, err == nil, err
}
