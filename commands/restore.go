package commands

import (
	"context"

	"jobledger/ledger"
)

// Restored appends that this ledger was restored, for whoever wonders why history goes on elsewhere than it ended. It
// is the last event of the copy that takes the ledger's place, and there before it does.
func (s *Service) Restored(ctx context.Context, actor string, what ledger.Restored) error {
	if err := checkText("from", what.From, MaxReason); err != nil {
		return err
	}
	return s.Store.Write(ctx, func(tx *ledger.Tx) error {
		return tx.Append(ctx, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: &what})
	})
}
