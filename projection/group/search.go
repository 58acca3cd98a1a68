package group

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Lane is a lane with groups that may start a job at some time.
type Lane struct {
	Base     string
	Eligible int64 // the earliest time
}

// lanesWithGroups seeks from each lane of a queue to the next. A paused queue has none.
const lanesWithGroups = `WITH RECURSIVE live(lane) AS (
    SELECT (SELECT min(lane) FROM group_heads WHERE lane >= ?1 AND lane < ?2 AND eligible_at IS NOT NULL)
    WHERE NOT EXISTS (SELECT 1 FROM queues WHERE paused = 1 AND queue = (SELECT n FROM names WHERE name = ?3))
    UNION ALL
    SELECT (SELECT min(lane) FROM group_heads
        WHERE lane > live.lane AND lane < ?2 AND eligible_at IS NOT NULL)
    FROM live WHERE live.lane IS NOT NULL)
SELECT live.lane, (SELECT min(h.eligible_at) FROM group_heads h
WHERE h.lane = live.lane AND h.eligible_at IS NOT NULL) FROM live WHERE live.lane IS NOT NULL`

// Lanes returns the lanes of a queue with groups that are not blocked.
func Lanes(ctx context.Context, tx *ledger.Tx, queue string) (found []Lane, err error) {
	from, before := Bounds(queue)
	rows, err := tx.QueryState(ctx, lanesWithGroups, from, before, queue)
	return table.All(rows, err, func(l *Lane) []any { return []any{&l.Base, &l.Eligible} })
}

// FirstRunAt returns the earliest run_at of the groups of a lane that are eligible by then. It reads all of
// them.
func FirstRunAt(ctx context.Context, tx *ledger.Tx, base string, then int64) (runAt int64, err error) {
	err = table.ScanOne(ctx, tx, `SELECT coalesce(min(run_at), ?2) FROM group_heads
WHERE lane = ?1 AND eligible_at <= ?2`, []any{&runAt}, base, then)
	return runAt, err
}

// Candidate is a group whose first job of a lane may start.
type Candidate struct {
	Group    string
	Eligible int64
}

// eligible is one range of the index eligible_groups.
const eligible = `SELECT grp, eligible_at FROM group_heads WHERE lane = ? AND eligible_at <= ?
ORDER BY eligible_at, served, grp LIMIT 0 + ?`

// Eligible returns up to limit groups of a lane that may start a job at now, the one that has waited for
// longest first.
func Eligible(ctx context.Context, tx *ledger.Tx, base string, now int64, limit int) (found []Candidate,
	err error) {
	rows, err := tx.QueryState(ctx, eligible, base, now, limit)
	return table.All(rows, err, func(c *Candidate) []any { return []any{&c.Group, &c.Eligible} })
}

const groupsAhead = `SELECT count(*) FROM group_heads o, group_heads h
WHERE h.queue = (SELECT n FROM names WHERE name = ?1) AND h.grp = ?2 AND h.lane = ?3
  AND o.lane = ?3 AND (o.eligible_at, o.served, o.grp) < (h.eligible_at, h.served, h.grp)`

// Ahead counts the groups of a lane that come before this one.
func Ahead(ctx context.Context, tx *ledger.Tx, base, name string) (n int64, err error) {
	rows, err := tx.QueryState(ctx, groupsAhead, QueueOf(base), name, base)
	_, err = table.First(rows, err, &n)
	return n, err
}

// Waiting is a group with queued jobs, or with live claims.
type Waiting struct {
	Group    string
	Queued   int64
	Live     int64
	Eligible int64 // when its next job may start, in microseconds; 0: none is queued, or the group is full
	Bound    int   // how many may be live; 0: any number
}

const (
	queuedOfGroups = `SELECT lane, count(*) FROM jobs WHERE lane >= ? AND lane < ? GROUP BY lane`
	headsOfQueue   = `SELECT h.grp, min(h.eligible_at) FROM group_heads h
WHERE h.queue = (SELECT n FROM names WHERE name = ?) AND h.eligible_at IS NOT NULL GROUP BY h.grp`
)

// OfQueue returns the groups of a queue with queued jobs or live claims, by name. It counts their queued
// jobs.
func OfQueue(ctx context.Context, tx *ledger.Tx, queue string, live map[string]int64) (found []Waiting,
	err error) {
	byName := make(map[string]Waiting)
	from, before := Bounds(queue)
	err = eachNumber(ctx, tx, func(lane string, n int64) {
		_, name, _ := Split(lane)
		w := byName[name]
		w.Queued += n
		byName[name] = w
	}, queuedOfGroups, from, before)
	if err != nil {
		return nil, err
	}
	err = eachNumber(ctx, tx, func(name string, at int64) {
		w := byName[name]
		w.Eligible = at
		byName[name] = w
	}, headsOfQueue, queue)
	if err != nil {
		return nil, err
	}
	for name, n := range live {
		if w := byName[name]; name != "" && n > 0 {
			w.Live = n
			byName[name] = w
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		w := byName[name]
		w.Group = name
		found = append(found, w)
	}
	return found, nil
}

// eachNumber calls fn for each row of a query for a text and a number.
func eachNumber(ctx context.Context, tx *ledger.Tx, fn func(string, int64), query string, args ...any) error {
	rows, err := tx.QueryState(ctx, query, args...)
	var text string
	var n int64
	return table.Each(rows, err, []any{&text, &n}, func() error {
		fn(text, n)
		return nil
	})
}
