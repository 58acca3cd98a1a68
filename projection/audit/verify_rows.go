package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
)

// rows reports what differs from the tables, now that every job was compared, and looks for rows without an
// event.
func (v *verifier) rows(ctx context.Context) error {
	numbers := v.compared.Numbers()
	for _, n := range numbers {
		if len(v.Findings) >= maxFindings {
			break
		}
		if err := v.row(ctx, n); err != nil {
			return err
		}
	}
	if err := v.extra(ctx, len(numbers) == 0); err != nil {
		return err
	}
	differing, err := differ.Queues(ctx, v.tx, v.fold.Queues)
	if err != nil {
		return err
	}
	for _, d := range differing {
		v.find(Finding{Code: FindQueue, Field: d.Field, Detail: fmt.Sprintf("queue %s: %s", d.Name, d.Detail)})
	}
	timetable, err := v.fold.Schedules.Differences(ctx, v.tx)
	for _, d := range timetable {
		v.find(Finding{Code: FindSchedule, Field: d.Field,
			Detail: fmt.Sprintf("schedule %s: %s", d.Name, d.Detail)})
	}
	if err != nil {
		return err
	}
	if err := v.limitRows(ctx); err != nil {
		return err
	}
	if err := v.groupRows(ctx); err != nil {
		return err
	}
	return v.dependencies(ctx)
}

// boundedRows compares the rows of the jobs of a window with the fold of all their events.
func (v *verifier) boundedRows(ctx context.Context) error {
	ns := slices.Sorted(maps.Keys(v.concerned))
	for len(ns) > 0 && len(v.Findings) < maxFindings {
		chunk := ns[:min(differ.Chunk, len(ns))]
		ns = ns[len(chunk):]
		clear(v.fold.Open)
		for e, err := range v.tx.Events(ctx, ledger.Filter{Jobs: chunk}) {
			if err != nil {
				return v.stop(e.Pos, err)
			}
			j := v.fold.Open[e.N]
			if j == nil {
				j = new(projection.Job)
				v.fold.Open[e.N] = j
			}
			if err := fold.Step(j, &e); err != nil {
				return v.stop(e.Pos, err)
			}
		}
		if err := v.compared.Compare(ctx, chunk); err != nil {
			return err
		}
		for _, n := range chunk {
			if !v.compared.Differs[n] {
				continue
			}
			if err := v.row(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// row reports the columns in which the row of job n differs.
func (v *verifier) row(ctx context.Context, n int64) error {
	before := v.Until + 1
	if v.bound > 0 {
		before = math.MaxInt64
	}
	j, err := fold.JobBefore(ctx, v.tx, n, before)
	if err != nil {
		return v.stop(n, err)
	}
	stored, ok, err := differ.Row(ctx, v.tx, n)
	if err != nil {
		return err
	}
	if !ok {
		v.find(Finding{Code: FindMissing, Job: j.ID, Detail: "the job has no row in the table jobs"})
		return nil
	}
	folded, err := projection.RowOf(ctx, v.tx, j)
	if err != nil {
		return err
	}
	for i := range folded {
		if stored[i] != folded[i] {
			column := table.Columns[i]
			v.find(Finding{Code: FindDiffers, Job: j.ID, Field: column, Detail: differ.Contradiction(column, stored[i],
				folded[i])})
		}
	}
	return nil
}

// extra reports rows of jobs without an event. If every job has its row, a count shows whether there are
// any.
func (v *verifier) extra(ctx context.Context, allThere bool) error {
	if allThere && v.Since == 0 {
		var rows int64
		err := table.ScanOne(ctx, v.tx, `SELECT count(*) FROM jobs`, []any{&rows})
		if err != nil || rows == v.fold.Jobs {
			return err
		}
	}
	extra, err := differ.Extra(ctx, v.tx, v.Since)
	if err != nil {
		return err
	}
	for _, n := range extra {
		v.find(Finding{Code: FindExtra,
			Detail: fmt.Sprintf("row %d of the table jobs belongs to no enqueued event", n)})
	}
	return nil
}
