package journal

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection/rebuild"
)

// Rebuild derives the projection from the events again, and records what that changed.
func Rebuild(ctx context.Context, store *ledger.Store, actor string) (report rebuild.Report, err error) {
	plan, err := ledger.Read(ctx, store, func(tx *ledger.Tx) (*rebuild.Plan, error) {
		return rebuild.New(ctx, tx)
	})
	if err != nil {
		return report, err
	}
	err = store.WriteRepair(ctx, func(tx *ledger.Tx) error {
		var err error
		if report, err = plan.Apply(ctx, tx); err != nil {
			return err
		}
		failpoint.Hit("rebuilt")
		body := &event.Rebuilt{Jobs: report.Jobs, Changed: report.Changed, Missing: report.Missing,
			Extra: report.Extra}
		_, err = Record(ctx, tx, Fact{Actor: actor, Body: body})
		return err
	})
	return report, err
}
