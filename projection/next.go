package projection

import (
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
)

// Want says which jobs a worker may take.
type Want struct {
	Queues       []string
	Version      string
	Capabilities []string
}

// Next returns up to limit queued jobs that fit and whose run_at has come, in claiming order: priority (higher
// first), run_at, id. It reads the head of each fitting lane and nothing else, so its cost does not grow with jobs
// that do not fit, are scheduled for later, or have ended.
func Next(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) ([]Job, error) {
	if limit <= 0 {
		return nil, nil
	}
	lanes, err := fitting(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for len(lanes) > 0 && len(jobs) < limit {
		same := 1 // lanes of the same priority are merged by run_at and id
		for same < len(lanes) && lanes[same].priority == lanes[0].priority {
			same++
		}
		heads, err := merge(ctx, tx, lanes[:same], now, limit-len(jobs))
		if err != nil {
			return nil, err
		}
		jobs, lanes = append(jobs, heads...), lanes[same:]
	}
	return jobs, nil
}

// NextRunAt returns the earliest run_at among the queued jobs that fit; zero if there is none.
func NextRunAt(ctx context.Context, tx *ledger.Tx, want Want) (earliest time.Time, err error) {
	lanes, err := fitting(ctx, tx, want)
	if err != nil {
		return earliest, err
	}
	for _, l := range lanes {
		heads, err := l.heads(ctx, tx, time.UnixMicro(1<<62), 1)
		if err != nil {
			return earliest, err
		}
		if len(heads) > 0 && (earliest.IsZero() || heads[0].RunAt.Before(earliest)) {
			earliest = heads[0].RunAt
		}
	}
	return earliest, nil
}

// liveLane is a lane with queued jobs in it.
type liveLane struct {
	text     string
	priority int
}

// liveLanes lists the lanes of one queue by jumping from each to the next: one index seek per lane.
const liveLanes = `WITH RECURSIVE live(lane) AS (
    SELECT (SELECT min(lane) FROM jobs WHERE lane >= ?1 AND lane < ?2)
    UNION ALL
    SELECT (SELECT min(lane) FROM jobs WHERE lane > live.lane AND lane < ?2) FROM live WHERE live.lane IS NOT NULL)
SELECT lane FROM live WHERE lane IS NOT NULL`

// fitting returns the live lanes that fit, higher priorities first, without those of paused queues.
func fitting(ctx context.Context, tx *ledger.Tx, want Want) ([]liveLane, error) {
	paused, err := pausedQueues(ctx, tx)
	if err != nil {
		return nil, err
	}
	var lanes []liveLane
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(want.Queues))) {
		if slices.Contains(paused, queue) {
			continue
		}
		from, before := laneBounds(queue)
		rows, err := tx.Query(ctx, liveLanes, from, before)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			l := liveLane{}
			if err = rows.Scan(&l.text); err != nil {
				break
			}
			j := Job{}
			if l.priority, j.Version, j.Requires, err = laneOf(l.text); err != nil {
				break
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
			return nil, err
		}
	}
	slices.SortStableFunc(lanes, func(a, b liveLane) int { return b.priority - a.priority })
	return lanes, nil
}

// laneHeads is the hot query: one range of the index ready.
var laneHeads = selectWithBody + ` WHERE j.lane = ? AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT ?`

func (l liveLane) heads(ctx context.Context, tx *ledger.Tx, now time.Time, limit int) ([]Job, error) {
	return many(ctx, tx, laneHeads, l.text, ledger.Micros(now), limit)
}

// laneRest is laneHeads from behind a job that has been taken already.
var laneRest = selectWithBody + ` WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT ?`

// merge takes limit jobs from the heads of lanes in the order of run_at and id. It reads a few of each lane and
// comes back for more, so that many lanes do not cost limit jobs each.
func merge(ctx context.Context, tx *ledger.Tx, lanes []liveLane, now time.Time, limit int) ([]Job, error) {
	if len(lanes) == 1 {
		return lanes[0].heads(ctx, tx, now, limit)
	}
	chunk := min(limit, 2+2*limit/len(lanes))
	heads := make([][]Job, len(lanes))
	for i, l := range lanes {
		var err error
		if heads[i], err = l.heads(ctx, tx, now, chunk); err != nil {
			return nil, err
		}
	}
	var jobs []Job
	for len(jobs) < limit {
		first := -1
		for i := range heads {
			if len(heads[i]) > 0 && (first < 0 || before(heads[i][0], heads[first][0])) {
				first = i
			}
		}
		if first < 0 {
			return jobs, nil
		}
		j := heads[first][0]
		jobs, heads[first] = append(jobs, j), heads[first][1:]
		if len(heads[first]) == 0 && len(jobs) < limit {
			rest, err := many(ctx, tx, laneRest, lanes[first].text, ledger.Micros(j.RunAt), string(j.ID), ledger.Micros(now), chunk)
			if err != nil {
				return nil, err
			}
			heads[first] = rest
		}
	}
	return jobs, nil
}

func before(a, b Job) bool {
	if !a.RunAt.Equal(b.RunAt) {
		return a.RunAt.Before(b.RunAt)
	}
	return strings.Compare(string(a.ID), string(b.ID)) < 0
}
