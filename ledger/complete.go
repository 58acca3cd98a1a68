package ledger

import (
	"context"
	"iter"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/row"
)

// Complete is Scan with the events as Events has them: with the job and the token that their rows leave out.
// It looks these up for many events at once, so it is the way to read much of a long ledger.
func (tx *Tx) Complete(ctx context.Context, what Scan) iter.Seq2[[]Scanned, error] {
	return func(yield func([]Scanned, error) bool) {
		known := make(row.Claims)
		for batch, err := range tx.Scan(ctx, what) {
			if err == nil {
				err = tx.complete(ctx, batch, known)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// complete sets the job and the token of each event of a batch.
func (tx *Tx) complete(ctx context.Context, batch []Scanned, known row.Claims) error {
	events := make([]*event.Event, len(batch))
	for i := range batch {
		events[i] = &batch[i].Event
	}
	wrong, err := known.Complete(ctx, tx.Each, events)
	if wrong != nil {
		err = &EventError{wrong.Pos, err}
	}
	return err
}
