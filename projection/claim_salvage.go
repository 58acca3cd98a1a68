package projection

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/ledger"
)

// DamagedJobError says that a job which is next in claiming order cannot be claimed, because what the ledger holds of
// it is damaged, and that there is no other to take in its place. It unwraps to ledger.ErrDamaged.
type DamagedJobError struct {
	Job ledger.JobID // "": what is damaged is a lane, which many jobs may share
	Err error
}

// Error says which job, and what is wrong with it.
func (e *DamagedJobError) Error() string {
	if e.Job == "" || strings.Contains(e.Err.Error(), string(e.Job)) {
		return e.Err.Error()
	}
	return fmt.Sprintf("job %s: %s", e.Job, e.Err)
}

// Unwrap returns the cause, and that it is damage.
func (e *DamagedJobError) Unwrap() []error { return []error{ledger.ErrDamaged, e.Err} }

const laneIDs = `SELECT j.n, j.id, j.run_at FROM jobs j WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

var withBodyByN = selectQueued + ` WHERE j.n = ?`

// readApart is read for a lane in which a row cannot be read: it takes each by itself and leaves out those that it
// cannot read, so that one damaged job does not keep the others of its lane from being claimed. It returns the first
// that was left out.
func (l *liveLane) readApart(ctx context.Context, tx *ledger.Tx, now time.Time, most int) (left error, err error) {
	l.ahead = nil
	runAt, id := int64(-1), ""
	if l.begun {
		runAt, id = l.runAt, l.id
	}
	for l.atEnd = false; !l.atEnd && len(l.ahead) < most; {
		page, err := lanePage(ctx, tx, l.text, runAt, id, now)
		if err != nil {
			return nil, err
		}
		l.atEnd = len(page) < lanePageSize
		for i, at := range page {
			jobs, err := many(ctx, tx, withBodyByN, at.n)
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil && left == nil {
				left = &DamagedJobError{ledger.JobID(at.id), err}
			}
			if err == nil {
				l.ahead = append(l.ahead, jobs...)
			}
			if runAt, id = at.runAt, at.id; len(l.ahead) == most {
				l.atEnd = l.atEnd && i == len(page)-1
				break
			}
		}
	}
	if len(l.ahead) > 0 {
		l.runAt, l.id = ledger.Micros(l.ahead[0].RunAt), string(l.ahead[0].ID)
	}
	return left, nil
}

type lanePlace struct {
	n, runAt int64
	id       string
}

const lanePageSize = 64

// lanePage lists jobs of a lane from behind a place in it, by what the index alone knows of them.
func lanePage(ctx context.Context, tx *ledger.Tx, lane string, runAt int64, id string, now time.Time) (page []lanePlace, err error) {
	rows, err := tx.QueryState(ctx, laneIDs, lane, runAt, id, ledger.Micros(now), lanePageSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var at lanePlace
		if err := rows.Scan(&at.n, &at.id, &at.runAt); err != nil {
			return nil, err
		}
		page = append(page, at)
	}
	return page, rows.Err()
}
