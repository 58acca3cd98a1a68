package projection

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// CountUpTo returns how many jobs of the ledger have a number up to pos. If a keyframe is near, it costs
// that and the events since.
func CountUpTo(ctx context.Context, tx *ledger.Tx, pos int64) (n int64, err error) {
	horizon, err := Horizon(ctx, tx)
	if err != nil {
		return 0, err
	}
	if pos > horizon { // no keyframe has which jobs had left before
		frame, err := keyframe.Near(ctx, tx, pos)
		if err != nil || frame != nil {
			return jobsOf(frame), err
		}
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return 0, err
	}
	if pos >= tail { // any index has all jobs
		err = table.ScanOne(ctx, tx, `SELECT count(*) FROM jobs`, []any{&n})
		return n, err
	}
	err = table.ScanOne(ctx, tx, `SELECT count(*) FROM jobs WHERE n <= ?`, []any{&n}, pos)
	return n, err
}

func jobsOf(f *keyframe.Frame) int64 {
	if f == nil {
		return 0
	}
	return f.Jobs()
}
