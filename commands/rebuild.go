package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/projection/rebuild"
)

// Rebuild derives the projection from the events again, and records what that changed. It finds the
// differences while others keep writing, and repairs only these in one transaction; if a whole table is
// missing, all is done in that.
func (s *Service) Rebuild(ctx context.Context, actor string) (report rebuild.Report, err error) {
	if err := CheckActor(actor); err != nil {
		return report, err
	}
	if s.Store == nil {
		return report, ErrNoStore
	}
	return journal.Rebuild(ctx, s.Store, actor)
}
