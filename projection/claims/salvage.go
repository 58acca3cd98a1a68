package claims

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// DamagedJobError reports that the next job in claiming order cannot be claimed because its row is damaged,
// and that there is no other job to take instead. It unwraps to ledger.ErrDamaged.
type DamagedJobError struct {
	Job event.JobID // "": the damage is in a lane, which many jobs may share
	Err error
}

// Error names the job and the damage.
func (e *DamagedJobError) Error() string {
	if e.Job == "" || strings.Contains(e.Err.Error(), string(e.Job)) {
		return e.Err.Error()
	}
	return fmt.Sprintf("job %s: %s", e.Job, e.Err)
}

// Unwrap returns ledger.ErrDamaged and the cause.
func (e *DamagedJobError) Unwrap() []error { return []error{ledger.ErrDamaged, e.Err} }

const lanePage = `SELECT j.n, j.id, j.run_at FROM jobs j
WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

var queuedByNumber = projection.SelectQueued + ` WHERE j.n = ?`

// readQueued reads job n by its number; none if it has gone.
func readQueued(ctx context.Context, tx *ledger.Tx, n int64) ([]projection.Job, error) {
	rows, err := tx.QueryState(ctx, queuedByNumber, n)
	if err != nil {
		return nil, err
	}
	return projection.ScanQueued(ctx, tx, rows, 1)
}

// salvage does what read does in a lane with a row that cannot be read. It reads row by row and skips the
// damaged ones, so that a damaged row does not block the others of its lane. skipped is the first of them.
func (l *laneCursor) salvage(ctx context.Context, tx *ledger.Tx, now time.Time, limit int) (skipped,
	err error) {
	l.buffered = nil
	at := lanePosition{runAt: -1}
	if l.taken {
		at = lanePosition{runAt: l.runAt, id: l.id}
	}
	for l.exhausted = false; !l.exhausted && len(l.buffered) < limit; {
		page, err := readLanePage(ctx, tx, l.lane, at, now)
		if err != nil {
			return nil, err
		}
		l.exhausted = len(page) < lanePageSize
		for i := range page {
			jobs, err := readQueued(ctx, tx, page[i].n)
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil && skipped == nil {
				skipped = &DamagedJobError{event.JobID(page[i].id), err}
			}
			if err == nil {
				l.buffered = append(l.buffered, jobs...)
			}
			if at = page[i]; len(l.buffered) == limit {
				l.exhausted = l.exhausted && i == len(page)-1
				break
			}
		}
	}
	l.positionAtBuffered()
	return skipped, nil
}

// lanePosition is the place of job n within its lane.
type lanePosition struct {
	n, runAt int64
	id       string
}

const lanePageSize = 64

// readLanePage lists the jobs of a lane after a position by what the index has of them.
func readLanePage(ctx context.Context, tx *ledger.Tx, lane string, after lanePosition, now time.Time) (
	page []lanePosition, err error) {
	rows, err := tx.QueryState(ctx, lanePage, lane, after.runAt, after.id, event.Micros(now), lanePageSize)
	return table.All(rows, err, func(at *lanePosition) []any {
		return []any{&at.n, &at.id, &at.runAt}
	})
}
