package status

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Queue describes one queue and its jobs at one time.
type Queue struct {
	projection.Queue
	Jobs        map[event.State]int64  // how many; a state without jobs may be missing
	Ready       int64                  // queued, and their run_at has come
	Scheduled   int64                  // queued, and their run_at has not come
	Retrying    int64                  // queued, and failed before
	OldestReady time.Time              // run_at of the job that has been ready for longest; zero: none
	NextRunAt   time.Time              // the earliest run_at that has not come; zero: none
	Expired     int64                  // held, and their lease is over: no sweeper has taken them back yet
	OldestLease time.Time              // the end of the lease that ended first; zero: none
	Lost        []projection.LostClaim // whose commands may still run, the oldest loss first
	LastHour    Activity
	Stranded    []Stranded // ready for a minute and not served; only AddStranded sets it
}

// Activity counts the events of jobs in a period.
type Activity struct {
	Enqueued  int64 `json:"enqueued"`
	Claimed   int64 `json:"claimed"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"` // attempts, not jobs
	Released  int64 `json:"released"`
	Reclaimed int64 `json:"reclaimed"`
	Cancelled int64 `json:"cancelled"`
	Refused   int64 `json:"refused"`
}

const queuedNow = `SELECT queue, count(*) FILTER (WHERE run_at <= ?1), count(*) FILTER (WHERE run_at > ?1),
    count(*) FILTER (WHERE failures > 0),
    coalesce(min(CASE WHEN run_at <= ?1 THEN run_at END), 0),
    coalesce(min(CASE WHEN run_at > ?1 THEN run_at END), 0)
FROM jobs WHERE lane IS NOT NULL GROUP BY queue`

const expiredNow = `SELECT queue, count(*), min(lease_expires_at) FROM jobs
WHERE lease_expires_at <= ? GROUP BY queue`

// Queues returns the status of every queue that has or had jobs, or is paused, by name, as of now.
func Queues(ctx context.Context, tx *ledger.Tx, now time.Time) ([]Queue, error) {
	byName := make(map[string]*Queue)
	c, err := countJobs(ctx, tx, projection.Moment{})
	if err != nil {
		return nil, err
	}
	for queue, counts := range c.now {
		statusOf(byName, queue).Jobs = counts
	}
	var n, scheduled, retrying, first, next int64
	err = eachQueue(ctx, tx, byName, func(s *Queue) {
		s.Ready, s.Scheduled, s.Retrying = n, scheduled, retrying
		s.OldestReady, s.NextRunAt = event.FromMicros(first), event.FromMicros(next)
	}, []any{&n, &scheduled, &retrying, &first, &next}, queuedNow, event.Micros(now))
	if err != nil {
		return nil, err
	}
	err = eachQueue(ctx, tx, byName, func(s *Queue) {
		s.Expired, s.OldestLease = n, event.FromMicros(first)
	}, []any{&n, &first}, expiredNow, event.Micros(now))
	if err != nil {
		return nil, err
	}
	if err := addLostClaims(ctx, tx, byName, projection.Moment{Pos: math.MaxInt64, At: now}); err != nil {
		return nil, err
	}
	hourAgo, err := tx.PosAt(ctx, now.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	if err := countActivity(ctx, tx, byName, hourAgo, tail); err != nil {
		return nil, err
	}
	known, err := projection.Queues(ctx, tx)
	if err != nil {
		return nil, err
	}
	return sortedStatus(byName, known), nil
}

// addLostClaims adds the claims that were lost by m and whose commands may still run then.
func addLostClaims(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue, m projection.Moment) error {
	lost, err := projection.LostClaims(ctx, tx, m)
	for _, c := range lost {
		s := statusOf(byName, c.Queue)
		s.Lost = append(s.Lost, c)
	}
	return err
}

// sortedStatus adds the pauses of known queues and returns the statuses by name.
func sortedStatus(byName map[string]*Queue, known []projection.Queue) (all []Queue) {
	for _, q := range known {
		if q.Paused || byName[q.Name] != nil {
			statusOf(byName, q.Name).Queue = q
		}
	}
	for _, s := range byName {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// statusOf returns the status of the queue with this name, a fresh one if there is none.
func statusOf(byName map[string]*Queue, name string) *Queue {
	if byName[name] == nil {
		byName[name] = &Queue{Queue: projection.Queue{Name: name}, Jobs: make(map[event.State]int64)}
	}
	return byName[name]
}

// eachQueue runs a query whose rows begin with the number of a queue, scans the rest into columns, and calls
// take with the status of that queue.
func eachQueue(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue, take func(*Queue),
	columns []any, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var queue int64
		if err := rows.Scan(append([]any{&queue}, columns...)...); err != nil {
			return err
		}
		name, err := tx.NameOf(ctx, queue)
		if err != nil {
			return err
		}
		take(statusOf(byName, name))
	}
	return rows.Err()
}

const activity = `SELECT j.queue, e.kind, count(*) FROM events e JOIN jobs j ON j.n = e.job
WHERE e.pos > ? AND e.pos <= ? AND e.kind IN (1, 2, 4, 5, 6, 7, 8, 11) GROUP BY j.queue, e.kind`

// countActivity counts the events after the pos after, up to until.
func countActivity(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue, after,
	until int64) error {
	var kind, n int64
	add := func(s *Queue) { s.LastHour.add(event.Kind(kind), n) }
	return eachQueue(ctx, tx, byName, add, []any{&kind, &n}, activity, after, until)
}

// Add adds b to a.
func (a *Activity) Add(b Activity) {
	a.Enqueued += b.Enqueued
	a.Claimed += b.Claimed
	a.Succeeded += b.Succeeded
	a.Failed += b.Failed
	a.Released += b.Released
	a.Reclaimed += b.Reclaimed
	a.Cancelled += b.Cancelled
	a.Refused += b.Refused
}

// add adds n events of a kind that the query activity selects.
func (a *Activity) add(kind event.Kind, n int64) {
	switch kind {
	case event.KindEnqueued:
		a.Enqueued += n
	case event.KindClaimed:
		a.Claimed += n
	case event.KindSucceeded:
		a.Succeeded += n
	case event.KindFailed:
		a.Failed += n
	case event.KindReleased:
		a.Released += n
	case event.KindReclaimed:
		a.Reclaimed += n
	case event.KindCancelled:
		a.Cancelled += n
	case event.KindRefused:
		a.Refused += n
	}
}
