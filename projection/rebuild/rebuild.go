// Package rebuild derives the tables from the events again, and writes the rows that differ. [New] makes a
// [Plan] from a snapshot while others write; [Plan.Apply] carries it out in one short transaction:
//
//	plan, err := rebuild.New(ctx, snapshot)
//	…
//	report, err := plan.Apply(ctx, tx)
//
// What differs, package projection/audit/differ finds, which verify uses too.
//
// Reading order: rebuild.go, tables.go.
//
// Held by TestRebuildRepairsAnyDamage of package projection/audit, and by TestRebuildWhileWorkersGoOn and
// TestRebuildWithoutTheTable of package commands. This package is not part of the Go API, and may change
// in any release.
package rebuild

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
	"jobledger/projection/schedules"
)

// Report says what a rebuild changed.
type Report struct {
	Jobs         int64    // that the events make
	Changed      int64    // rows that differed
	Missing      int64    // jobs that had no row
	Extra        int64    // rows that belonged to no job
	Queues       int64    // rows of queues that differed
	Limits       int64    // rows of limits that differed
	Groups       int64    // rows of group_heads that differed
	Schedules    int64    // rows of schedules that differed
	Dependencies int64    // jobs of which the table deps did not say what they wait for
	Departed     bool     // the table departed was not what the removed events say
	Frames       int64    // keyframes that were wrong and are removed; the next sweep adds what is due
	Repaired     []string // schema objects that were missing or altered, such as "trigger events_no_update"
}

func repairSchema(ctx context.Context, tx *ledger.Tx) ([]string, error) {
	return tx.RepairSchema(ctx, "write_lock", "jobs", "queues", "limits", "group_heads", "group_rates",
		"presence", "keyframes", "timetable", "deps", "resolving", "ends", "delayed", "departed", "kinds",
		"states")
}

// Plan is what a rebuild has to do, as one snapshot shows it. Making the plan takes long, and others write
// meanwhile: their transitions keep a right row right (I3), and Apply derives a wrong row from all events up
// to then.
type Plan struct {
	whole     bool           // a table is missing or altered: there is nothing to compare
	until     int64          // the last event that it saw
	jobs      int64          // that the events up to there make
	differ    []int64        // numbers of jobs whose rows are missing or not what they should be
	extra     []int64        // numbers of rows that belong to no job
	frames    []int64        // wrong keyframes
	schedules schedules.Fold // that the events up to there make
	fold      *fold.Fold     // as of until: what was served in the groups
}

// New returns what a rebuild has to do. An event that cannot be folded is an error.
func New(ctx context.Context, tx *ledger.Tx) (*Plan, error) {
	problems, err := tx.Guards(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, "table ") }) {
		return &Plan{whole: true}, nil
	}
	return planRows(ctx, tx)
}

// Apply carries out the plan in tx.
func (p *Plan) Apply(ctx context.Context, tx *ledger.Tx) (r Report, err error) {
	if p.whole {
		return All(ctx, tx)
	}
	if r.Repaired, err = repairSchema(ctx, tx); err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx, p)
}

// All makes the plan and carries it out, in one transaction. If an event cannot be folded, it returns an
// error and changes nothing.
func All(ctx context.Context, tx *ledger.Tx) (r Report, err error) {
	repaired, err := repairSchema(ctx, tx)
	if err != nil {
		return r, err
	}
	r, err = Rows(ctx, tx)
	r.Repaired = repaired
	return r, err
}

// Rows is All without the repair of the schema.
func Rows(ctx context.Context, tx *ledger.Tx) (r Report, err error) {
	p, err := planRows(ctx, tx)
	if err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx, p)
}

// planRows folds every event and compares the rows of jobs with what comes out.
func planRows(ctx context.Context, tx *ledger.Tx) (s *Plan, err error) {
	s = &Plan{}
	if s.extra, err = differ.Extra(ctx, tx, 0); err != nil {
		return nil, err
	}
	f := fold.New()
	if f.Gaps.Horizon, err = projection.Horizon(ctx, tx); err != nil {
		return nil, err
	}
	f.Load = func(n, pos int64) (projection.Job, error) { return fold.JobBefore(ctx, tx, n, pos) }
	f.Deps = differ.NewDependencies(ctx, f, f.Gaps.Horizon, func() *ledger.Tx { return tx })
	compared := differ.NewJobs(tx, f)
	frames, err := differ.KeyframesSince(ctx, tx, 0)
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
			if err := frames.Add(ctx, e, j); err != nil {
				return nil, err
			}
		}
	}
	if err := frames.End(ctx); err != nil {
		return nil, err
	}
	s.jobs, s.frames, s.schedules, s.fold = f.Jobs, frames.Wrong, f.Schedules, f
	s.differ, err = compared.Rest(ctx)
	return s, err
}

var (
	enqueuedAfterPlan = event.SQL(`SELECT count(*) FROM events WHERE pos > ? AND kind = {enqueued}`)
	deleteExtra       = event.SQL(`DELETE FROM jobs WHERE n = ?1
AND NOT EXISTS (SELECT 1 FROM events WHERE pos = ?1 AND kind = {enqueued})`)
)

// rows corrects the rows of jobs and queues.
func (r *Report) rows(ctx context.Context, tx *ledger.Tx, s *Plan) error {
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
	var err error
	if r.Departed, err = projection.RepairDeparted(ctx, tx); err != nil {
		return err
	}
	return r.groups(ctx, tx, s)
}
