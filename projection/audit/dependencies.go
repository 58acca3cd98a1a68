package audit

import (
	"context"
	"fmt"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
)

// dependencies compares the table deps with the fold.
func (v *verifier) dependencies(ctx context.Context) error {
	if v.fold.Deps == nil {
		return nil
	}
	differ, err := differingDependencies(ctx, v.tx, v.fold.Deps)
	for _, d := range differ {
		f := Finding{Code: FindDependency, Field: "deps", Detail: d.Text}
		if f.Job, err = projection.IDOf(ctx, v.tx, d.Child); err != nil {
			return err
		}
		v.find(f)
	}
	return err
}

func differingDependencies(ctx context.Context, tx *ledger.Tx, f *deps.Fold) ([]deps.Difference, error) {
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

// newDependencies returns the fold of what jobs wait for, which finds the jobs in jobs, and others by their
// rows or, where these are damaged, by their events. Events up to horizon may have left the ledger.
func newDependencies(ctx context.Context, jobs *fold.Fold, horizon int64, tx func() *ledger.Tx) *deps.Fold {
	find := func(id event.JobID, pos int64) (n int64, state event.State, err error) {
		const byRow = `SELECT e.pos FROM jobs j JOIN events e ON e.pos = j.n AND e.kind = 1 AND e.ulid = j.id
WHERE j.id = ?`
		err = table.ScanOne(ctx, tx(), byRow, []any{&n}, string(id))
		if err == nil && n == 0 {
			err = table.ScanOne(ctx, tx(), `SELECT pos FROM events WHERE kind = 1 AND ulid = ?`, []any{&n}, string(id))
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

// writeDependencies adds what f has to the tables, which are empty.
func writeDependencies(tx *ledger.Tx, f *deps.Fold) error {
	edges, resolving := f.Table()
	for _, e := range edges {
		if err := deps.Add(tx, e); err != nil {
			return err
		}
	}
	for _, s := range resolving {
		if err := s.Postpone(tx); err != nil {
			return err
		}
	}
	return nil
}

// dependencies makes the tables of what jobs wait for again, if they differ from all events. Where no job
// ever waited, it reads no event.
func (r *Rebuilt) dependencies(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return err
	}
	f := s.fold.Deps
	if tail > s.until { // others wrote meanwhile
		if f, err = foldDependencies(ctx, tx, f, s.until); err != nil {
			return err
		}
	}
	differ, err := differingDependencies(ctx, tx, f)
	if err != nil || len(differ) == 0 {
		return err
	}
	differ = slices.CompactFunc(differ, func(a, b deps.Difference) bool { return a.Child == b.Child })
	r.Dependencies = int64(len(differ))
	for _, name := range []string{"deps", "resolving"} {
		if _, err := tx.Exec(fmt.Sprintf(`DELETE FROM %s`, name)); err != nil {
			return err
		}
	}
	return writeDependencies(tx, f)
}

// foldDependencies adds the events after until to f.
func foldDependencies(ctx context.Context, tx *ledger.Tx, f *deps.Fold, until int64) (*deps.Fold, error) {
	f.Find = newDependencies(ctx, fold.New(), f.Horizon, func() *ledger.Tx { return tx }).Find
	for e, err := range tx.Events(ctx, ledger.Filter{After: until}) {
		if err != nil {
			return nil, err
		}
		if _, err := f.Add(&e); err != nil {
			return nil, err
		}
	}
	return f, nil
}
