package rebuild

import (
	"context"
	"math"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/deps"
	"jobledger/projection/fold"
	"jobledger/projection/group"
	"jobledger/projection/internal/table"
	"jobledger/projection/limit"
)

// Tables makes the tables of queues, limits, groups and schedules what f has, which was given every event.
func Tables(ctx context.Context, tx *ledger.Tx, f *fold.Fold) error {
	r, s := new(Report), &Plan{until: tx.Next() - 1, schedules: f.Schedules, fold: f}
	for _, table := range []func(context.Context, *ledger.Tx, *Plan) error{r.timetable, r.limits, r.groups} {
		if err := table(ctx, tx, s); err != nil {
			return err
		}
	}
	return r.queues(ctx, tx)
}

// timetable corrects the rows of schedules.
func (r *Report) timetable(ctx context.Context, tx *ledger.Tx, s *Plan) error {
	err := s.schedules.Continue(ctx, tx, s.until, tx.Next()-1)
	if err == nil {
		r.Schedules, err = s.schedules.Repair(ctx, tx)
	}
	return err
}

// queues corrects the rows of queues. Their events are few.
func (r *Report) queues(ctx context.Context, tx *ledger.Tx) error {
	found, err := projection.QueuesAsOf(ctx, tx, projection.Moment{Pos: math.MaxInt64})
	if err != nil {
		return err
	}
	folded := make(map[string]projection.Queue)
	for _, q := range found {
		folded[q.Name] = q
	}
	differing, err := differ.Queues(ctx, tx, folded)
	if err != nil {
		return err
	}
	for i, d := range differing {
		if i > 0 && d.Number == differing[i-1].Number {
			continue // another column of the same row
		}
		r.Queues++
		if q, ok := folded[d.Name]; ok {
			err = projection.PutQueue(ctx, tx, q)
		} else {
			_, err = tx.Exec(`DELETE FROM queues WHERE queue = ?`, d.Number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limits corrects the rows of limits.
func (r *Report) limits(ctx context.Context, tx *ledger.Tx, s *Plan) error {
	folded := s.fold.Limits.Clone()
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueueLimited, event.KindClaimed}, After: s.until}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if err := folded.Add(e); err != nil {
			return err
		}
		if e.Kind() != event.KindClaimed || len(folded) == 0 {
			continue
		}
		j, _, err := projection.Get(ctx, tx, e.Job)
		if err != nil {
			return err
		}
		folded.Start(j.Queue, j.Group, e.At)
	}
	differing, err := differ.Limits(ctx, tx, folded, true, s.fold.Gaps.Horizon)
	if err != nil {
		return err
	}
	for i, d := range differing {
		if i > 0 && d.LimitKey == differing[i-1].LimitKey {
			continue // another column of the same row
		}
		r.Limits++
		if l := folded[d.Name]; l.Has(d.Group) {
			err = projection.PutLimit(ctx, tx, limit.Limit{}, l)
		} else {
			_, err = tx.Exec(`DELETE FROM limits WHERE queue = ? AND grp = ?`, d.Queue, d.Group)
		}
		if err != nil {
			return err
		}
	}
	// After PutLimit, which removes rows of rates that changed.
	return r.rates(ctx, tx, folded, s.fold.Gaps.Horizon)
}

// deleteColliding removes the rows that a job's row collides with. A row of another job among them is
// damaged, and is written when that job is repaired.
const deleteColliding = `DELETE FROM jobs WHERE n = ?1 OR id = ?2 OR queue = ?3 AND key = ?4`

// repair writes the row of j if it differs.
func (r *Report) repair(ctx context.Context, tx *ledger.Tx, j projection.Job) error {
	stored, ok, err := differ.Row(ctx, tx, j.N)
	if err != nil {
		return err
	}
	folded, err := projection.RowOf(ctx, tx, j)
	if err != nil || ok && stored == folded {
		return err
	}
	if ok {
		r.Changed++
	} else {
		r.Missing++
	}
	queue, key := folded[slices.Index(table.Columns[:], "queue")], folded[slices.Index(table.Columns[:], "key")]
	if _, err := tx.Exec(deleteColliding, j.N, string(j.ID), queue, key); err != nil {
		return err
	}
	return tx.Insert(table.New, folded[:]...)
}

// rates corrects the rows of group_rates.
func (r *Report) rates(ctx context.Context, tx *ledger.Tx, folded limit.Set, horizon int64) error {
	differing, err := differ.Rates(ctx, tx, folded, horizon)
	if err != nil {
		return err
	}
	for _, d := range differing {
		r.Limits++
		if d.Want == 0 {
			err = limit.DeleteGroupUsed(tx, d.Stored.Queue, d.Stored.Group)
		} else {
			err = limit.PutGroupUsed(ctx, tx, d.Name, d.Stored.Group, d.Want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dependencies makes the tables of what jobs wait for again, if they differ from all events. If no job
// ever waited, it reads no event.
func (r *Report) dependencies(ctx context.Context, tx *ledger.Tx, s *Plan) error {
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
	differing, err := differ.Dependencies(ctx, tx, f)
	if err != nil || len(differing) == 0 {
		return err
	}
	differing = slices.CompactFunc(differing, func(a, b deps.Difference) bool { return a.Child == b.Child })
	r.Dependencies = int64(len(differing))
	return f.Write(ctx, tx)
}

// foldDependencies adds the events after until to f.
func foldDependencies(ctx context.Context, tx *ledger.Tx, f *deps.Fold, until int64) (*deps.Fold, error) {
	f.Find = differ.NewDependencies(ctx, fold.New(), f.Horizon, func() *ledger.Tx { return tx }).Find
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

// groups corrects the rows of group_heads. Those whose last claim came after the plan keep it.
func (r *Report) groups(ctx context.Context, tx *ledger.Tx, s *Plan) error {
	differing, err := differ.Heads(ctx, tx, s.fold, true, s.fold.Gaps.Horizon, s.until)
	if err != nil {
		return err
	}
	for i, d := range differing {
		if i > 0 && d.Lane == differing[i-1].Lane {
			continue // another column of the same row
		}
		r.Groups++
		if d.Extra || d.Got.Queue != d.Want.Queue && !d.Missing {
			err = group.DeleteAny(tx, d.Got)
		}
		if err == nil && !d.Extra {
			err = group.Put(ctx, tx, d.Want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
