package projection

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
)

// Want says which jobs a worker may take.
type Want struct {
	Queues       []string
	Version      string
	Capabilities []string
	Except       []ledger.JobID // jobs to step over
}

// Next returns up to limit queued jobs that fit and whose run_at has come, in claiming order: priority (higher
// first), run_at, id. It looks at the head of each lane and reads jobs only where one is next, so its cost does not
// grow with jobs that do not fit, are scheduled for later, or have ended. A job that is damaged is stepped over; if
// there is no other, the error is a DamagedJobError.
func Next(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) ([]Job, error) {
	lanes, damaged, err := fitting(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	lanes = slices.DeleteFunc(lanes, func(l liveLane) bool { return l.runAt > ledger.Micros(now) })
	var jobs []Job
	for len(lanes) > 0 && len(jobs) < limit {
		first, rivals := 0, 0
		for i := range lanes {
			if lanes[i].compare(&lanes[first]) < 0 {
				first = i
			}
		}
		l := &lanes[first]
		switch {
		case len(l.ahead) > 0:
			if !slices.Contains(want.Except, l.ahead[0].ID) {
				jobs = append(jobs, l.ahead[0])
			}
			l.advance()
		case l.atEnd:
			lanes = slices.Delete(lanes, first, first+1)
		default:
			for i := range lanes {
				if lanes[i].priority == l.priority {
					rivals++
				}
			}
			left := limit - len(jobs) // many lanes must not cost so many jobs each
			most := min(left, 1+2*left/rivals)
			if l.read(ctx, tx, now, most) == nil {
				break
			}
			leftOut, err := l.readApart(ctx, tx, now, most)
			if err != nil {
				return nil, err
			}
			damaged = cmp.Or(damaged, leftOut)
		}
	}
	if len(jobs) == 0 {
		return nil, damaged
	}
	return jobs, nil
}

// NextRunAt returns the earliest run_at among the queued jobs that fit; zero if there is none.
func NextRunAt(ctx context.Context, tx *ledger.Tx, want Want) (earliest time.Time, err error) {
	lanes, damaged, err := fitting(ctx, tx, want)
	if err == nil && len(lanes) == 0 {
		err = damaged
	}
	if err != nil || len(lanes) == 0 {
		return earliest, err
	}
	first := slices.MinFunc(lanes, func(a, b liveLane) int { return cmp.Compare(a.runAt, b.runAt) })
	return ledger.FromMicros(first.runAt), nil
}

// liveLane is a lane with queued jobs in it, and how far it has been read.
type liveLane struct {
	text     string
	priority int
	runAt    int64  // of its next job; once ahead is used up, of the last one taken, which is not after the next
	id       string // likewise
	begun    bool   // the job at runAt and id has been taken
	ahead    []Job
	atEnd    bool // there is nothing behind ahead
}

// compare tells which lane has the next job in claiming order.
func (l *liveLane) compare(other *liveLane) int {
	return cmp.Or(other.priority-l.priority, cmp.Compare(l.runAt, other.runAt), cmp.Compare(l.id, other.id))
}

// laneHeads is the hot query: one range of the index ready. It begins at the job that is known to be the first, because
// before that PostgreSQL has entries of jobs that are gone and passes over each. A bare LIMIT ? would be compiled anew for
// each value, since SQLite 3.47 plans with it.
var laneHeads = selectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) >= (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

// laneRest is laneHeads from behind a job that has been taken already.
var laneRest = selectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

// read gets the next jobs of l, with their payloads.
func (l *liveLane) read(ctx context.Context, tx *ledger.Tx, now time.Time, most int) (err error) {
	if l.begun {
		l.ahead, err = many(ctx, tx, laneRest, l.text, l.runAt, l.id, ledger.Micros(now), most)
	} else {
		l.ahead, err = many(ctx, tx, laneHeads, l.text, l.runAt, l.id, ledger.Micros(now), most)
	}
	if err != nil {
		return err
	}
	l.atEnd = len(l.ahead) < most
	if len(l.ahead) > 0 {
		l.runAt, l.id = ledger.Micros(l.ahead[0].RunAt), string(l.ahead[0].ID)
	}
	return nil
}

// advance leaves the first job of ahead behind.
func (l *liveLane) advance() {
	l.begun, l.ahead = true, l.ahead[1:]
	if len(l.ahead) > 0 {
		l.runAt, l.id = ledger.Micros(l.ahead[0].RunAt), string(l.ahead[0].ID)
	}
}

// liveLanes lists the lanes of one queue by jumping from each to the next, each with its first job: a few index
// seeks per lane. A paused queue has none.
const liveLanes = `WITH RECURSIVE live(lane) AS (
    SELECT (SELECT min(lane) FROM jobs WHERE lane >= ?1 AND lane < ?2)
    WHERE NOT EXISTS (SELECT 1 FROM queues WHERE paused = 1 AND queue = (SELECT n FROM names WHERE name = ?3))
    UNION ALL
    SELECT (SELECT min(lane) FROM jobs WHERE lane > live.lane AND lane < ?2) FROM live WHERE live.lane IS NOT NULL)
SELECT live.lane, j.run_at, j.id
FROM live JOIN jobs j ON j.id = (SELECT i.id FROM jobs i WHERE i.lane = live.lane ORDER BY i.run_at, i.id LIMIT 1)`

// fitting returns the live lanes that fit, and the first that cannot be read, if any.
func fitting(ctx context.Context, tx *ledger.Tx, want Want) (lanes []liveLane, damaged, err error) {
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(want.Queues))) {
		from, before := laneBounds(queue)
		rows, err := tx.QueryState(ctx, liveLanes, from, before, queue)
		if err != nil {
			return nil, nil, err
		}
		for rows.Next() {
			l := liveLane{}
			if err = rows.Scan(&l.text, &l.runAt, &l.id); err != nil {
				break
			}
			j := Job{}
			var damage error
			if l.priority, j.Version, j.Requires, damage = laneOf(l.text); damage != nil {
				damaged = cmp.Or[error](damaged, &DamagedJobError{Err: damage})
				continue
			}
			if fits, _ := Fits(j, want.Version, want.Capabilities); fits {
				lanes = append(lanes, l)
			}
		}
		if err == nil {
			err = rows.Err()
		}
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return lanes, damaged, nil
}
