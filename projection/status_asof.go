package projection

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// StatusThen is the status of one queue at a moment, and how many jobs it has now.
type StatusThen struct {
	QueueStatus
	Now map[event.State]int64

	open map[int64]Job // of all queues, see openJobsAsOf
}

// StatusAsOf returns what Status would have returned at m, and the counts of now. It reads every row of jobs,
// and the events of the jobs that had not ended at m.
func StatusAsOf(ctx context.Context, tx *ledger.Tx, m Moment) ([]StatusThen, error) {
	then, now := make(map[string]*QueueStatus), make(map[string]map[event.State]int64)
	err := countJobs(ctx, tx, m, func(queue string, state event.State, jobs, ended int64) {
		if now[queue] == nil {
			now[queue] = make(map[event.State]int64)
		}
		now[queue][state] = jobs
		if ended > 0 {
			statusOf(then, queue).Jobs[state] = ended
		}
	})
	if err != nil {
		return nil, err
	}
	jobs, err := openJobsAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		statusOf(then, j.Queue).count(j, m.At)
	}
	hourBefore, err := tx.PosAt(ctx, m.At.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	if err := countActivity(ctx, tx, then, hourBefore, m.Pos); err != nil {
		return nil, err
	}
	known, err := QueuesAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	var all []StatusThen
	for _, s := range sortedStatus(then, known) {
		all = append(all, StatusThen{QueueStatus: s, Now: now[s.Name], open: jobs})
	}
	return all, nil
}

// AddStrandedAsOf is AddStranded for the statuses that StatusAsOf returned for m.
func AddStrandedAsOf(ctx context.Context, tx *ledger.Tx, queues []StatusThen, m Moment) error {
	waited := func(q StatusThen) bool {
		return !q.Paused && !q.OldestReady.IsZero() && m.At.Sub(q.OldestReady) >= time.Minute
	}
	if !slices.ContainsFunc(queues, waited) {
		return nil
	}
	open := queues[0].open
	workforce, err := workforceAsOf(ctx, tx, heldOfJobs(open), m)
	if err != nil {
		return err
	}
	ready := make(map[string]*Stranded) // by lane
	for _, j := range open {
		if j.State != event.Queued || j.RunAt.After(m.At) {
			continue
		}
		lane := laneOf(j)
		if ready[lane] == nil {
			ready[lane] = &Stranded{Queue: j.Queue, Version: j.Version, Requires: j.Requires}
		}
		ready[lane].Jobs++
		ready[lane].Since = earliest(ready[lane].Since, j.RunAt)
	}
	for _, lane := range slices.Sorted(maps.Keys(ready)) {
		s := ready[lane]
		i := slices.IndexFunc(queues, func(q StatusThen) bool { return q.Name == s.Queue })
		if i < 0 || queues[i].Paused || m.At.Sub(s.Since) < time.Minute {
			continue
		}
		if s.Service = workforce.ServiceOf(s.Queue, s.Version, s.Requires); !s.Served() {
			queues[i].Stranded = s.addTo(queues[i].Stranded)
		}
	}
	return nil
}

// openJobsAsOf returns the jobs whose rows do not say what they were at m, as they were then: all that were
// queued or held, and some that had ended.
func openJobsAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (map[int64]Job, error) {
	open, err := openAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	return jobsAsOf(ctx, tx, open, m)
}

// heldOfJobs returns those of jobs that are held, in the order of their claims.
func heldOfJobs(jobs map[int64]Job) (held []Job) {
	for _, j := range jobs {
		if j.State.Held() {
			held = append(held, j)
		}
	}
	slices.SortFunc(held, func(a, b Job) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.N, b.N))
	})
	return held
}

// jobCounts scans the table: an index for the counts of ended jobs would cost every transition. Counting here
// costs some 20 ms per 60,000 jobs more than packing the rows into one text and counting in Go, a tenth of
// the command.
const jobCounts = `SELECT queue, state, count(*), count(CASE WHEN finished_at < ? THEN 1 END) FROM jobs
GROUP BY queue, state`

// countJobs calls take for each queue and state with the number of jobs, and how many of them had ended so by
// m.
func countJobs(ctx context.Context, tx *ledger.Tx, m Moment,
	take func(queue string, state event.State, jobs, ended int64)) error {
	rows, err := tx.Query(ctx, jobCounts, m.next)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number, jobs, ended int64
		var state event.State
		if err := rows.Scan(&number, &state, &jobs, &ended); err != nil {
			return err
		}
		queue, err := tx.NameOf(ctx, number)
		if err != nil {
			return err
		}
		take(queue, state, jobs, ended)
	}
	return rows.Err()
}

// openThen reads every row of the jobs up to a moment.
const openThen = `SELECT n FROM jobs WHERE n <= ? AND (finished_at IS NULL OR finished_at >= ?)`

// These find the same jobs by what is open now and by what has ended since. The + keeps SQLite from the index
// on job.
const (
	queuedOf   = `SELECT n FROM jobs WHERE lane > '' AND n <= ?`
	heldOf     = `SELECT n FROM jobs WHERE lease_expires_at > 0 AND n <= ?`
	endedSince = `SELECT job FROM events WHERE pos > ? AND to_state >= 4 AND +job <= ?`
)

// eventsPerJob is about how many events a job has: reading these costs as much as reading its row.
const eventsPerJob = 4

// openAsOf returns the numbers of the jobs that existed at m and whose rows do not say what they were then.
// It costs what has happened since m, or the jobs that existed at m, if these are fewer.
func openAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (open []int64, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil || m.Pos == 0 {
		return nil, err
	}
	add := func(query string, args ...any) {
		if err == nil {
			err = addNumbers(ctx, tx, &open, query, args...)
		}
	}
	if tail-m.Pos > m.Pos/eventsPerJob {
		add(openThen, m.Pos, m.next)
	} else {
		since := tail
		if m.next != math.MaxInt64 {
			since, err = tx.PosAt(ctx, event.FromMicros(m.next-1))
		}
		add(queuedOf, m.Pos)
		add(heldOf, m.Pos)
		add(endedSince, since, m.Pos)
	}
	slices.Sort(open)
	return slices.Compact(open), err
}

// addNumbers adds the numbers that query finds.
func addNumbers(ctx context.Context, tx *ledger.Tx, found *[]int64, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		*found = append(*found, n)
	}
	return rows.Err()
}

// count adds a job.
func (s *QueueStatus) count(j Job, now time.Time) {
	s.Jobs[j.State]++
	switch {
	case j.State == event.Queued && j.RunAt.After(now):
		s.Scheduled++
		s.NextRunAt = earliest(s.NextRunAt, j.RunAt)
	case j.State == event.Queued:
		s.Ready++
		s.OldestReady = earliest(s.OldestReady, j.RunAt)
	case j.State.Held() && !j.LeaseUntil.After(now):
		s.Expired++
		s.OldestLease = earliest(s.OldestLease, j.LeaseUntil)
	}
	if j.State == event.Queued && j.Failures > 0 {
		s.Retrying++
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// QueuesAsOf returns every queue that had been paused by m, by name. It folds the events of queues, which are
// few.
func QueuesAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (found []Queue, err error) {
	if m.Pos == 0 {
		return nil, nil
	}
	byName := make(map[string]Queue)
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueuePaused, event.KindQueueResumed}, Until: m.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		name := queueOf(e)
		q, err := EvolveQueue(byName[name], e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Pos, err)
		}
		byName[name] = q
	}
	for _, q := range byName {
		found = append(found, q)
	}
	slices.SortFunc(found, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// queueOf returns the queue that e pauses or resumes.
func queueOf(e event.Event) string {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		return b.Queue
	case *event.QueueResumed:
		return b.Queue
	}
	return ""
}
