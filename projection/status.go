package projection

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
)

// QueueStatus is how things stand in one queue.
type QueueStatus struct {
	Queue
	Jobs        map[ledger.State]int64 // how many; a state without jobs may be missing
	Ready       int64                  // queued, and their run_at has come
	Scheduled   int64                  // queued, and their run_at has not come
	Retrying    int64                  // queued, and failed before
	OldestReady time.Time              // run_at of the one that has been ready for longest; zero: none is
	NextRunAt   time.Time              // the earliest run_at that has not come; zero: none
	Expired     int64                  // held, and their lease is over: nobody has swept them yet
	OldestLease time.Time              // the end of the lease that has been over for longest; zero: none is
	LastHour    Activity
}

// Activity counts what happened to jobs in some time.
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

const queuedNow = `SELECT queue, count(*) FILTER (WHERE run_at <= ?1), count(*) FILTER (WHERE run_at > ?1), count(*) FILTER (WHERE failures > 0),
    coalesce(min(CASE WHEN run_at <= ?1 THEN run_at END), 0), coalesce(min(CASE WHEN run_at > ?1 THEN run_at END), 0)
FROM jobs WHERE lane IS NOT NULL GROUP BY queue`

const expiredNow = `SELECT queue, count(*), min(lease_expires_at) FROM jobs WHERE lease_expires_at <= ? GROUP BY queue`

// Status returns how things stand at now, by the name of the queue: every queue that has or had jobs, or is paused.
func Status(ctx context.Context, tx *ledger.Tx, now time.Time) ([]QueueStatus, error) {
	byName, counts := make(map[string]*QueueStatus), make(map[string]map[ledger.State]int64)
	if _, err := countStanding(ctx, tx, Moment{Pos: math.MaxInt64, next: math.MaxInt64}, byName, counts); err != nil {
		return nil, err
	}
	for name, jobs := range counts {
		statusOf(byName, name).Jobs = jobs
	}
	var n, scheduled, retrying, first, next int64
	err := eachQueue(ctx, tx, byName, func(s *QueueStatus) {
		s.Ready, s.Scheduled, s.Retrying = n, scheduled, retrying
		s.OldestReady, s.NextRunAt = ledger.FromMicros(first), ledger.FromMicros(next)
	}, []any{&n, &scheduled, &retrying, &first, &next}, queuedNow, ledger.Micros(now))
	if err != nil {
		return nil, err
	}
	err = eachQueue(ctx, tx, byName, func(s *QueueStatus) { s.Expired, s.OldestLease = n, ledger.FromMicros(first) },
		[]any{&n, &first}, expiredNow, ledger.Micros(now))
	if err != nil {
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
	known, err := Queues(ctx, tx)
	if err != nil {
		return nil, err
	}
	return sortedStatus(byName, known), nil
}

// sortedStatus adds what is known of the queues and returns them by name.
func sortedStatus(byName map[string]*QueueStatus, known []Queue) (all []QueueStatus) {
	for _, q := range known {
		if q.Paused || byName[q.Name] != nil {
			statusOf(byName, q.Name).Queue = q
		}
	}
	for _, s := range byName {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b QueueStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// statusOf returns the status of the queue with this name, a fresh one if there is none.
func statusOf(byName map[string]*QueueStatus, name string) *QueueStatus {
	if byName[name] == nil {
		byName[name] = &QueueStatus{Queue: Queue{Name: name}, Jobs: make(map[ledger.State]int64)}
	}
	return byName[name]
}

// eachQueue runs a query whose rows begin with the number of a queue, scans the rest into columns, and calls take
// with the status of that queue.
func eachQueue(ctx context.Context, tx *ledger.Tx, byName map[string]*QueueStatus, take func(*QueueStatus), columns []any, query string, args ...any) error {
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

// countActivity counts what happened behind after and up to until.
func countActivity(ctx context.Context, tx *ledger.Tx, byName map[string]*QueueStatus, after, until int64) error {
	var kind, n int64
	return eachQueue(ctx, tx, byName, func(s *QueueStatus) { s.LastHour.add(ledger.Kind(kind), n) }, []any{&kind, &n}, activity, after, until)
}

// Add adds what happened in b.
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

// add notes n events of a kind that activity selects.
func (a *Activity) add(kind ledger.Kind, n int64) {
	switch kind {
	case ledger.KindEnqueued:
		a.Enqueued += n
	case ledger.KindClaimed:
		a.Claimed += n
	case ledger.KindSucceeded:
		a.Succeeded += n
	case ledger.KindFailed:
		a.Failed += n
	case ledger.KindReleased:
		a.Released += n
	case ledger.KindReclaimed:
		a.Reclaimed += n
	case ledger.KindCancelled:
		a.Cancelled += n
	case ledger.KindRefused:
		a.Refused += n
	}
}
