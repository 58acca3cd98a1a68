package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Restored records that this ledger was restored, so that its history explains why it continues from an
// earlier event. It is the last event of the copy that replaces the ledger, and is recorded before it does.
func (s *Service) Restored(ctx context.Context, actor string, what event.Restored) error {
	if err := CheckText("from", what.From, MaxReason); err != nil {
		return err
	}
	return s.write(ctx, func(tx *ledger.Tx) error {
		_, err := journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: &what})
		return err
	})
}
