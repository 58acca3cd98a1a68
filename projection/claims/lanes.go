package claims

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/internal/lane"
	"jobledger/projection/internal/table"
)

// laneCursor is a lane with queued jobs in it, and how far a search has read it.
type laneCursor struct {
	lane     string
	queue    string
	priority int
	version  string
	requires []string

	// The position: the run_at and id of the lane's next job, or a place before it.
	runAt   int64
	id      string
	taken   bool // the job at the position has been taken
	drained bool // all jobs that were due have been taken; the position is where the next might be

	// What a search has read from the position on.
	buffered  []projection.Job
	grouped   bool // it is of groups; keys are the times by which the buffered jobs are in order
	keys      []int64
	lastRead  int                  // how many jobs the last read found
	exhausted bool                 // no further job after buffered is due
	pending   *ledger.PendingQuery // the next read, if it has been sent
	wanted    int                  // how many jobs it asks for
}

func newLaneCursor(text string, runAt int64, id string) (l *laneCursor, err error) {
	l = &laneCursor{lane: text, runAt: runAt, id: id}
	l.queue, _, _ = strings.Cut(text, " ")
	l.priority, l.version, l.requires, err = lane.Parse(text)
	return l, err
}

// compare orders lanes by their next jobs, in claiming order.
func (l *laneCursor) compare(other *laneCursor) int {
	return cmp.Or(other.priority-l.priority, cmp.Compare(l.runAt, other.runAt), cmp.Compare(l.id, other.id))
}

// compareAged is compare for lanes of a queue in which each ageing microseconds of waiting count as one step
// of priority; 0: waiting does not count.
func (l *laneCursor) compareAged(other *laneCursor, ageing int64) int {
	if ageing == 0 {
		return l.compare(other)
	}
	key := func(l *laneCursor) int64 { return l.runAt - int64(l.priority)*ageing }
	return cmp.Or(cmp.Compare(key(l), key(other)), l.compare(other))
}

// moveTo sets the position to a job that has not been taken.
func (l *laneCursor) moveTo(runAt int64, id string) {
	l.runAt, l.id, l.taken, l.drained = runAt, id, false, false
}

// advance takes the first buffered job.
func (l *laneCursor) advance() {
	l.taken, l.buffered = true, l.buffered[1:]
	if l.grouped {
		l.keys = l.keys[1:]
	}
	l.positionAtBuffered()
}

// positionAtBuffered sets the position to the first buffered job, if any.
func (l *laneCursor) positionAtBuffered() {
	if len(l.buffered) > 0 {
		l.runAt, l.id = event.Micros(l.buffered[0].RunAt), string(l.buffered[0].ID)
		if l.grouped {
			l.runAt = l.keys[0]
		}
	}
}

// drain notes that all jobs that were due at now have been taken.
func (l *laneCursor) drain(now time.Time) {
	l.runAt, l.id, l.taken, l.drained = event.Micros(now)+1, "", false, true
}

// endSearch drops the jobs that were read and not taken: the next search must read what has become of them.
func (l *laneCursor) endSearch() {
	if len(l.buffered) > 0 {
		l.taken = false
	}
	l.pending, l.buffered, l.exhausted = nil, nil, false
}

// laneHead is the hot query: one range of the index ready, with the payloads. It begins at the position,
// because PostgreSQL would step over the index entries of claimed jobs before it. The limit is 0 + ? because
// SQLite, since 3.47, compiles a bare LIMIT ? again for each value.
var laneHead = projection.SelectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) >= (?, ?) AND j.run_at <= ?
ORDER BY j.run_at, j.id LIMIT 0 + ?`

// laneRest is laneHead after the position, whose job has been taken.
var laneRest = projection.SelectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ?
ORDER BY j.run_at, j.id LIMIT 0 + ?`

// laneQuery is the query for the next jobs of a lane. taken says that the job at its position is.
func laneQuery(taken bool) string {
	if taken {
		return laneRest
	}
	return laneHead
}

// prefetch sends the query for the next limit jobs that are due at now, unless c has speculated on them.
func (l *laneCursor) prefetch(tx *ledger.Tx, c *claimCache, now time.Time, limit int) (err error) {
	if l.pending = c.speculative(tx, l, now); l.pending != nil {
		l.wanted = c.speculation.limit
		return nil
	}
	l.wanted = limit
	l.pending, err = tx.Prefetch(laneQuery(l.taken), l.lane, l.runAt, l.id, event.Micros(now), limit)
	return err
}

// read buffers the next jobs, which may have been prefetched.
func (l *laneCursor) read(ctx context.Context, tx *ledger.Tx, c *claimCache, now time.Time, limit int) error {
	if l.pending == nil {
		if err := l.prefetch(tx, c, now, limit); err != nil {
			return err
		}
	}
	rows, err := l.pending.Rows(ctx)
	l.pending = nil
	if err == nil {
		l.buffered, err = projection.ScanQueued(ctx, tx, rows, min(l.lastRead, l.wanted))
	}
	if err != nil {
		return err
	}
	// A speculative read may reach beyond now.
	l.buffered = slices.DeleteFunc(l.buffered, func(j projection.Job) bool { return j.RunAt.After(now) })
	l.exhausted, l.lastRead = len(l.buffered) < l.wanted, len(l.buffered)
	l.positionAtBuffered()
	return nil
}

// lanesWithJobs lists the lanes of one queue by seeking from each to the next, each with its first job: a few
// index seeks per lane. A paused queue has none. A queue with limits, or
// with queued jobs of groups, has a further row, without a lane.
const lanesWithJobs = `WITH RECURSIVE live(lane) AS (
    SELECT (SELECT min(lane) FROM jobs WHERE lane >= ?1 AND lane < ?2)
    WHERE NOT EXISTS (SELECT 1 FROM queues WHERE paused = 1 AND queue = (SELECT n FROM names WHERE name = ?3))
    UNION ALL
    SELECT (SELECT min(lane) FROM jobs WHERE lane > live.lane AND lane < ?2) FROM live
WHERE live.lane IS NOT NULL)
SELECT live.lane, j.run_at, j.id
FROM live JOIN jobs j ON j.id = (SELECT i.id FROM jobs i WHERE i.lane = live.lane ORDER BY i.run_at,
i.id LIMIT 1)
UNION ALL SELECT '', 0, '' WHERE EXISTS (SELECT 1 FROM limits
WHERE queue = (SELECT n FROM names WHERE name = ?3))
UNION ALL SELECT '', 1, '' WHERE EXISTS (SELECT 1 FROM group_heads WHERE lane >= ?4 AND lane < ?5
AND eligible_at IS NOT NULL)`

// queueHas is what a queue has besides the lanes of ungrouped jobs.
type queueHas struct{ limits, groups bool }

// listLanes returns the lanes of a queue with ungrouped jobs in them, what else it has, and the first lane
// that cannot be read, if any.
func listLanes(ctx context.Context, tx *ledger.Tx, queue string) (list []*laneCursor, has queueHas, damaged,
	err error) {
	from, before := lane.Bounds(queue)
	groupsFrom, groupsBefore := group.Bounds(queue)
	rows, err := tx.QueryState(ctx, lanesWithJobs, from, before, queue, groupsFrom, groupsBefore)
	var lane, id string
	var runAt int64
	err = table.Each(rows, err, []any{&lane, &runAt, &id}, func() error {
		if lane == "" {
			has.limits, has.groups = has.limits || runAt == 0, has.groups || runAt == 1
			return nil
		}
		l, damage := newLaneCursor(lane, runAt, id)
		if damage != nil {
			damaged = cmp.Or[error](damaged, &DamagedJobError{Err: damage})
			return nil
		}
		list = append(list, l)
		return nil
	})
	return list, has, damaged, err
}

// fittingLanes returns the lanes whose jobs want may take, and the first lane that cannot be read, if any.
func fittingLanes(ctx context.Context, tx *ledger.Tx, c *claimCache, want Want) (fit []*laneCursor, damaged,
	err error) {
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(want.Queues))) {
		list, damage, err := c.lanes(ctx, tx, queue)
		if err != nil {
			return nil, nil, err
		}
		damaged = cmp.Or(damaged, damage)
		for _, l := range list {
			if l.fits(want) {
				fit = append(fit, l)
			}
		}
	}
	return fit, damaged, nil
}

func (l *laneCursor) fits(want Want) bool {
	j := projection.Job{Version: l.version, Requires: l.requires}
	fits, _ := projection.Fits(j, want.Version, want.Capabilities)
	return fits
}
