package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
)

// Rebuilt reports what a rebuild changed.
type Rebuilt struct {
	Jobs         int64    // that the events make
	Changed      int64    // rows that differed
	Missing      int64    // jobs that had no row
	Extra        int64    // rows that belonged to no job
	Queues       int64    // rows of queues that differed
	Limits       int64    // rows of limits that differed
	Groups       int64    // rows of group_heads that differed
	Schedules    int64    // rows of schedules that differed
	Dependencies int64    // jobs of which the table deps did not say what they wait for
	Frames       int64    // keyframes that were wrong and are removed; the next sweep adds what is due
	Repaired     []string // schema objects that were missing or altered, such as "trigger events_no_update"
}

// rebuildAll repairs the schema, folds every event and writes the rows that differ. If an event cannot be
// folded, it returns an error and changes nothing.
func rebuildAll(ctx context.Context, tx *ledger.Tx) (r Rebuilt, err error) {
	if r.Repaired, err = repairSchema(ctx, tx); err != nil {
		return r, err
	}
	s, err := planRows(ctx, tx)
	if err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx, s)
}

func repairSchema(ctx context.Context, tx *ledger.Tx) ([]string, error) {
	return tx.RepairSchema(ctx, "write_lock", "jobs", "queues", "limits", "group_heads", "group_rates",
		"presence", "keyframes", "timetable", "deps", "resolving", "kinds", "states")
}

// RebuildPlan is what a rebuild has to do, as one snapshot shows it. Making the plan takes long, and others
// write meanwhile: their transitions keep a right row right (I3), and Apply derives a wrong row from all
// events up to then.
type RebuildPlan struct {
	whole     bool           // a table is missing or altered: there is nothing to compare
	until     int64          // the last event that it saw
	jobs      int64          // that the events up to there make
	differ    []int64        // numbers of jobs whose rows are missing or not what they should be
	extra     []int64        // numbers of rows that belong to no job
	frames    []int64        // wrong keyframes
	schedules schedules.Fold // that the events up to there make
	fold      *fold.Fold     // as of until: what was served in the groups
}

// PlanRebuild returns what a rebuild has to do. An event that cannot be folded is an error.
func PlanRebuild(ctx context.Context, tx *ledger.Tx) (*RebuildPlan, error) {
	problems, err := tx.Guards(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, "table ") }) {
		return &RebuildPlan{whole: true}, nil
	}
	return planRows(ctx, tx)
}

// Apply carries out the plan in tx.
func (p *RebuildPlan) Apply(ctx context.Context, tx *ledger.Tx) (r Rebuilt, err error) {
	if p.whole {
		return rebuildAll(ctx, tx)
	}
	if r.Repaired, err = repairSchema(ctx, tx); err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx, p)
}

// planRows folds every event and compares the rows of jobs with what comes out.
func planRows(ctx context.Context, tx *ledger.Tx) (s *RebuildPlan, err error) {
	s = &RebuildPlan{}
	if s.extra, err = differ.Extra(ctx, tx, 0); err != nil {
		return nil, err
	}
	f := fold.New()
	if f.Gaps.Horizon, err = projection.Horizon(ctx, tx); err != nil {
		return nil, err
	}
	f.Load = func(n, pos int64) (projection.Job, error) { return fold.JobBefore(ctx, tx, n, pos) }
	f.Deps = newDependencies(ctx, f, f.Gaps.Horizon, func() *ledger.Tx { return tx })
	compared := differ.NewJobs(tx, f)
	frames, err := keyframesSince(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	for batch, err := range tx.Scan(ctx, ledger.Scan{}) {
		if err != nil {
			return nil, err
		}
		for i := range batch {
			e := &batch[i].Event
			j, err := f.Before(e)
			if err != nil {
				return nil, err
			}
			fold.CompleteScanned(j, e)
			if err := f.Add(j, e); err != nil {
				return nil, fmt.Errorf("event %d: %w", e.Pos, err)
			}
			if j != nil && j.State.Final() {
				if err := compared.End(ctx, j.N); err != nil {
					return nil, err
				}
			}
			s.until = e.Pos
			if err := frames.add(ctx, e, j); err != nil {
				return nil, err
			}
		}
	}
	if err := frames.end(ctx); err != nil {
		return nil, err
	}
	s.jobs, s.frames, s.schedules, s.fold = f.Jobs, frames.wrong, f.Schedules, f
	s.differ, err = compared.Rest(ctx)
	return s, err
}

const (
	enqueuedAfterPlan = `SELECT count(*) FROM events WHERE pos > ? AND kind = 1`
	deleteExtra       = `DELETE FROM jobs WHERE n = ?1
AND NOT EXISTS (SELECT 1 FROM events WHERE pos = ?1 AND kind = 1)`
)

// rows corrects the rows of jobs and queues.
func (r *Rebuilt) rows(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
	tx.Cache().Invalidate() // rows change without claims.Put
	for _, n := range s.extra {
		gone, err := tx.Exec(deleteExtra, n)
		if err != nil {
			return err
		}
		r.Extra += gone
	}
	if err := table.ScanOne(ctx, tx, enqueuedAfterPlan, []any{&r.Jobs}, s.until); err != nil {
		return err
	}
	r.Jobs += s.jobs
	for _, n := range s.differ {
		j, err := fold.JobBefore(ctx, tx, n, math.MaxInt64)
		if err == nil && j.State == 0 {
			continue // it has left the ledger meanwhile
		}
		if err == nil {
			err = r.repair(ctx, tx, j)
		}
		if err != nil {
			return err
		}
	}
	for _, pos := range s.frames {
		if err := keyframe.Remove(tx, pos); err != nil {
			return err
		}
		r.Frames++
	}
	if err := r.timetable(ctx, tx, s); err != nil {
		return err
	}
	if err := r.dependencies(ctx, tx, s); err != nil {
		return err
	}
	if err := r.queues(ctx, tx); err != nil {
		return err
	}
	if err := r.limits(ctx, tx, s); err != nil {
		return err
	}
	return r.groups(ctx, tx, s)
}

// timetable corrects the rows of schedules.
func (r *Rebuilt) timetable(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
	err := s.schedules.Continue(ctx, tx, s.until, tx.Next()-1)
	if err == nil {
		r.Schedules, err = s.schedules.Repair(ctx, tx)
	}
	return err
}

// queues corrects the rows of queues. Their events are few.
func (r *Rebuilt) queues(ctx context.Context, tx *ledger.Tx) error {
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
func (r *Rebuilt) limits(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
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
func (r *Rebuilt) repair(ctx context.Context, tx *ledger.Tx, j projection.Job) error {
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
func (r *Rebuilt) rates(ctx context.Context, tx *ledger.Tx, folded limit.Set, horizon int64) error {
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
