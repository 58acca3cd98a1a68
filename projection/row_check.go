package projection

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// QueuedColumns are the columns of jobs j that ScanTaken reads.
var QueuedColumns = queuedRow.list

// ScanTaken reads a queued job from QueuedColumns, and the columns after these into more.
func ScanTaken(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, j *Job, more ...any) error {
	return scanJob(ctx, tx, rows, &queuedRow, j, more...)
}

// Change is a column of the table jobs with its new value: int64, string, or nil for null.
type Change struct {
	Column string
	Value  any
}

// Changes returns what Put would write over old.
func Changes(ctx context.Context, tx *ledger.Tx, old, new Job) (list []Change, err error) {
	before, err := RowOf(ctx, tx, old)
	if err != nil {
		return nil, err
	}
	after, err := RowOf(ctx, tx, new)
	for i := range after {
		if before[i] != after[i] {
			list = append(list, Change{table.Columns[i], after[i]})
		}
	}
	return list, err
}

var byNumber = `SELECT ` + table.List + ` FROM jobs j WHERE j.n = ?`

// CheckRow returns ErrDamaged if the row of j is not as Put would have written it, unless it has changed
// since.
func CheckRow(ctx context.Context, tx *ledger.Tx, j Job) error {
	want, err := RowOf(ctx, tx, j)
	if err != nil {
		return err
	}
	var read [table.Width]any
	into := make([]any, table.Width)
	for i := range read {
		into[i] = &read[i]
	}
	if err := table.ScanOne(ctx, tx, byNumber, into, j.N); err != nil {
		return err
	}
	if seq, _ := read[2].(int64); seq > j.Seq {
		return nil
	}
	for i, value := range read {
		if !ledger.SameValue(value, want[i]) {
			return fmt.Errorf("%w: job %s: %s is %v instead of %v", ledger.ErrDamaged, j.ID, table.Columns[i],
				value, want[i])
		}
	}
	return nil
}
