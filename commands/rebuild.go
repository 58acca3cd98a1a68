package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection/rebuild"
)

// Rebuild derives the projection from the events again, and records what that changed. It finds the
// differences while others keep writing, and repairs only these in one transaction; if a whole table is
// missing, all is done in that.
func (s *Service) Rebuild(ctx context.Context, actor string) (report rebuild.Report, err error) {
	if err := CheckActor(actor); err != nil {
		return report, err
	}
	var plan *rebuild.Plan
	err = s.read(ctx, func(tx *ledger.Tx) (err error) {
		plan, err = rebuild.New(ctx, tx)
		return err
	})
	if err != nil {
		return report, err
	}
	err = s.Store.WriteRepair(ctx, func(tx *ledger.Tx) error {
		var err error
		if report, err = plan.Apply(ctx, tx); err != nil {
			return err
		}
		failpoint.Hit("rebuilt")
		body := &event.Rebuilt{Jobs: report.Jobs, Changed: report.Changed, Missing: report.Missing,
			Extra: report.Extra}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: body})
		return err
	})
	return report, err
}
