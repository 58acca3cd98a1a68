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
	"jobledger/projection/internal/table"
)

// rows reports what differs from the tables, now that every job was compared, and looks for rows without an
// event.
func (v *verifier) rows(ctx context.Context) error {
	differ := sortedKeys(v.compared.differs)
	for _, n := range differ {
		if len(v.Findings) >= maxFindings {
			break
		}
		if err := v.row(ctx, n); err != nil {
			return err
		}
	}
	if err := v.extra(ctx, len(differ) == 0); err != nil {
		return err
	}
	differing, err := differingQueues(ctx, v.tx, v.fold.queues)
	if err != nil {
		return err
	}
	for _, d := range differing {
		v.find(Finding{Code: FindQueue, Field: d.field, Detail: fmt.Sprintf("queue %s: %s", d.queue, d.detail)})
	}
	return nil
}

// boundedRows compares the rows of the jobs of a window with the fold of all their events.
func (v *verifier) boundedRows(ctx context.Context) error {
	ns := sortedKeys(v.concerned)
	for len(ns) > 0 && len(v.Findings) < maxFindings {
		chunk := ns[:min(compareChunk, len(ns))]
		ns = ns[len(chunk):]
		clear(v.fold.open)
		for e, err := range v.tx.Events(ctx, ledger.Filter{Jobs: chunk}) {
			if err != nil {
				return v.stop(e.Pos, err)
			}
			j := v.fold.open[e.N]
			if j == nil {
				j = new(projection.Job)
				v.fold.open[e.N] = j
			}
			if err := step(j, &e); err != nil {
				return v.stop(e.Pos, err)
			}
		}
		if err := v.compared.compare(ctx, chunk); err != nil {
			return err
		}
		for _, n := range chunk {
			if !v.compared.differs[n] {
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
	j, err := jobBefore(ctx, v.tx, n, before)
	if err != nil {
		return v.stop(n, err)
	}
	stored, ok, err := rawRow(ctx, v.tx, n)
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
			v.find(Finding{Code: FindDiffers, Job: j.ID, Field: column, Detail: contradiction(column, stored[i],
				folded[i])})
		}
	}
	return nil
}

// extra reports rows of jobs without an event. Where every job has its row, a count shows whether there are
// any.
func (v *verifier) extra(ctx context.Context, allThere bool) error {
	if allThere && v.Since == 0 {
		var rows int64
		err := table.ScanOne(ctx, v.tx, `SELECT count(*) FROM jobs`, []any{&rows})
		if err != nil || rows == v.fold.jobs {
			return err
		}
	}
	extra, err := extraRows(ctx, v.tx, v.Since)
	if err != nil {
		return err
	}
	for _, n := range extra {
		v.find(Finding{Code: FindExtra,
			Detail: fmt.Sprintf("row %d of the table jobs belongs to no enqueued event", n)})
	}
	return nil
}

// contradiction describes a column that differs.
func contradiction(column string, stored, folded any) string {
	return fmt.Sprintf("the table says %s, the events say %s", shown(column, stored), shown(column, folded))
}

// shown formats the value of a column for people.
func shown(column string, v any) string {
	n, isNumber := v.(int64)
	switch {
	case v == nil:
		return "null"
	case isNumber && column == "state":
		return event.State(n).String()
	case isNumber && (strings.HasSuffix(column, "_at") || column == "end_by" || column == "since"):
		return event.FormatTime(event.FromMicros(n))
	case isNumber:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.200q", fmt.Sprint(v))
}

func sortedKeys[V any](m map[int64]V) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
