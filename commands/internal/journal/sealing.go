package journal

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// Seal records that sealing begins or continues with another key, and returns the new setting.
func Seal(ctx context.Context, tx *ledger.Tx, actor string, now projection.Sealing, body *event.Sealing) (
	after projection.Sealing, err error) {
	e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: body}
	if _, err := Record(ctx, tx, Fact{Actor: actor, Body: body}); err != nil {
		return after, err
	}
	if body.Sealed {
		if err := tree.SealIn(ctx, tx, e.At); err != nil {
			return after, err
		}
	}
	return projection.EvolveSealing(now, e)
}
