package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// Rebuilt reports what a rebuild changed.
type Rebuilt struct {
	Jobs     int64    // that the events make
	Changed  int64    // rows that differed
	Missing  int64    // jobs that had no row
	Extra    int64    // rows that belonged to no job
	Queues   int64    // rows of queues that differed
	Frames   int64    // keyframes that were wrong and are removed; the next sweep adds what is due
	Repaired []string // schema objects that were missing or altered, such as "trigger events_no_update"
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
	return tx.RepairSchema(ctx, "jobs", "queues", "presence", "keyframes", "kinds", "states")
}

// RebuildPlan is what a rebuild has to do, as one snapshot shows it. Making the plan takes long, and others
// write meanwhile: their transitions keep a right row right (I3), and Apply derives a wrong row from all
// events up to then.
type RebuildPlan struct {
	whole  bool    // a table is missing or altered: there is nothing to compare
	until  int64   // the last event that it saw
	jobs   int64   // that the events up to there make
	differ []int64 // numbers of jobs whose rows are missing or not what they should be
	extra  []int64 // numbers of rows that belong to no job
	frames []int64 // wrong keyframes
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
	if s.extra, err = extraRows(ctx, tx, 0); err != nil {
		return nil, err
	}
	f := newFold()
	f.load = func(n, pos int64) (projection.Job, error) { return jobBefore(ctx, tx, n, pos) }
	compared := newComparison(tx, f)
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
			j, err := f.before(e)
			if err != nil {
				return nil, err
			}
			completeScanned(j, e)
			if err := f.add(j, e); err != nil {
				return nil, fmt.Errorf("event %d: %w", e.Pos, err)
			}
			if j != nil && j.State.Final() {
				if err := compared.end(ctx, j.N); err != nil {
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
	s.jobs, s.frames = f.jobs, frames.wrong
	s.differ, err = compared.rest(ctx)
	return s, err
}

const (
	enqueuedAfterPlan = `SELECT count(*) FROM events WHERE pos > ? AND kind = 1`
	deleteExtra       = `DELETE FROM jobs WHERE n = ?1
AND NOT EXISTS (SELECT 1 FROM events WHERE pos = ?1 AND kind = 1)`
)

// rows corrects the rows of jobs and queues.
func (r *Rebuilt) rows(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
	tx.Cache().Invalidate() // rows change without projection.Put
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
		j, err := jobBefore(ctx, tx, n, math.MaxInt64)
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
	return r.queues(ctx, tx)
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
	differing, err := differingQueues(ctx, tx, folded)
	if err != nil {
		return err
	}
	for i, d := range differing {
		if i > 0 && d.number == differing[i-1].number {
			continue // another column of the same row
		}
		r.Queues++
		if q, ok := folded[d.queue]; ok {
			err = projection.PutQueue(ctx, tx, q)
		} else {
			_, err = tx.Exec(`DELETE FROM queues WHERE queue = ?`, d.number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteColliding removes the rows that a job's row collides with. A row of another job among them is
// damaged, and is written when that job is repaired.
const deleteColliding = `DELETE FROM jobs WHERE n = ?1 OR id = ?2 OR queue = ?3 AND key = ?4`

// repair writes the row of j if it differs.
func (r *Rebuilt) repair(ctx context.Context, tx *ledger.Tx, j projection.Job) error {
	stored, ok, err := rawRow(ctx, tx, j.N)
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
	queue := folded[slices.Index(table.Columns[:], "queue")]
	if _, err := tx.Exec(deleteColliding, j.N, string(j.ID), queue, table.Text(j.Key)); err != nil {
		return err
	}
	return tx.Insert(table.New, folded[:]...)
}
