package differ

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
)

// Dependencies returns where the tables of what jobs wait for differ from f.
func Dependencies(ctx context.Context, tx *ledger.Tx, f *deps.Fold) ([]deps.Difference, error) {
	edges, err := deps.All(ctx, tx)
	if err != nil {
		return nil, err
	}
	resolving, err := deps.Pending(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	return f.Compare(edges, resolving), nil
}

var (
	byRow = event.SQL(`SELECT e.pos FROM jobs j
JOIN events e ON e.pos = j.n AND e.kind = {enqueued} AND e.ulid = j.id WHERE j.id = ?`)
	byEvent = event.SQL(`SELECT pos FROM events WHERE kind = {enqueued} AND ulid = ?`)
)

// NewDependencies returns the fold of what jobs wait for, which finds the jobs in jobs, and others by their
// rows or, where these are damaged, by their events. Events up to horizon may have left the ledger.
func NewDependencies(ctx context.Context, jobs *fold.Fold, horizon int64, tx func() *ledger.Tx) *deps.Fold {
	find := func(id event.JobID, pos int64) (n int64, state event.State, err error) {
		err = table.ScanOne(ctx, tx(), byRow, []any{&n}, string(id))
		if err == nil && n == 0 {
			err = table.ScanOne(ctx, tx(), byEvent, []any{&n}, string(id))
		}
		switch {
		case err != nil:
			return 0, 0, err
		case n == 0 && horizon > 0:
			return 0, 0, nil
		case n == 0 || n >= pos:
			return 0, 0, fmt.Errorf("%w: the event %d names the job %s, which was not enqueued before",
				projection.ErrIllegal, pos, id)
		}
		if j, ok := jobs.Open[n]; ok {
			return n, j.State, nil
		}
		j, err := fold.JobBefore(ctx, tx(), n, pos)
		return n, j.State, err
	}
	return &deps.Fold{Horizon: horizon, Find: find}
}
