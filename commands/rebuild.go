package commands

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection/audit"
)

// Rebuild derives the projection anew from the events, and records what that changed. Others go on while it finds out
// what differs; only that is written in one transaction. Where a table is missing as a whole, all is done in that.
func (s *Service) Rebuild(ctx context.Context, actor string) (report audit.Rebuilt, err error) {
	if err := CheckActor(actor); err != nil {
		return report, err
	}
	var plan *audit.RebuildPlan
	err = s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		plan, err = audit.PlanRebuild(ctx, tx)
		return err
	})
	if err != nil {
		return report, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		var err error
		if report, err = plan.Apply(ctx, tx); err != nil {
			return err
		}
		failpoint.Hit("rebuilt")
		return tx.Append(ctx, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: &ledger.Rebuilt{Jobs: report.Jobs,
			Changed: report.Changed, Missing: report.Missing, Extra: report.Extra}})
	})
	return report, err
}
