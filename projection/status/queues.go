package status

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
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
	Overdue     int64                  // of these, for so long that a running sweeper would have taken them back
	Lost        []projection.LostClaim // whose commands may still run, the oldest loss first
	LastHour    Activity
	Stranded    []Stranded            // ready for a minute and not served; only if Queues.Stranded
	Now         map[event.State]int64 // how many jobs it has now; of now: as Jobs
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

// sweepDelay is how long after the end of a lease, and its grace, a sweeper should have come.
const sweepDelay = 2 * time.Minute

// expiredNow allows for the grace of a sweeper, which is shorter than one more lease.
const expiredNow = `SELECT queue, count(*), min(lease_expires_at),
    count(*) FILTER (WHERE lease_expires_at <= ?2
        AND 2 * lease_expires_at - coalesce(heartbeat_at, lease_expires_at) <= ?2)
FROM jobs WHERE lease_expires_at <= ?1 GROUP BY queue`

// Queues asks how the queues are doing. Now it reads the indexes of what is open; as of a moment the events
// of the jobs that had not ended then, and counts from the keyframes before it and before the end. Without
// keyframes it reads every row of jobs.
type Queues struct {
	At       projection.Moment // see projection.Now
	Stranded bool              // also which ready jobs are not served
}

// Read returns the status of every queue that has or had jobs, or is paused, by name. As of a moment, jobs
// that have left the ledger since count then; if some of the hour before has left, the error is a
// projection.ArchivedError.
func (q Queues) Read(ctx context.Context, tx *ledger.Tx) ([]Queue, error) {
	found, l, err := q.read(ctx, tx)
	if err == nil && q.Stranded {
		err = l.addStranded(ctx, tx, found)
	}
	return found, err
}

// look is a question about a moment, and what was read for it.
type look struct {
	at      projection.Moment
	open    map[int64]projection.Job // of the past: see projection.OpenJobsAsOf
	workers []Worker                 // all of them; nil: not read yet
}

// lookAt returns the question, and of the past the jobs that were open then.
func lookAt(ctx context.Context, tx *ledger.Tx, m projection.Moment) (l *look, err error) {
	l = &look{at: m}
	if !m.IsNow() {
		l.open, err = projection.OpenJobsAsOf(ctx, tx, m)
	}
	return l, err
}

func (q Queues) read(ctx context.Context, tx *ledger.Tx) (found []Queue, l *look, err error) {
	l = &look{at: q.At}
	byName := make(map[string]*Queue)
	now, err := l.count(ctx, tx, byName)
	if err != nil {
		return nil, nil, err
	}
	if err := addLostClaims(ctx, tx, byName, q.At); err != nil {
		return nil, nil, err
	}
	hourBefore, err := tx.PosAt(ctx, q.At.At.Add(-time.Hour))
	if err == nil && !q.At.IsNow() {
		err = projection.AfterHorizon(ctx, tx, hourBefore)
	}
	if err != nil {
		return nil, nil, err
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := countActivity(ctx, tx, byName, hourBefore, min(q.At.Pos, tail)); err != nil {
		return nil, nil, err
	}
	known, err := l.known(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	found = sortedStatus(byName, known)
	for i := range found {
		found[i].Now = now[found[i].Name]
	}
	return found, l, nil
}

// known returns every queue that had been paused, by name.
func (l *look) known(ctx context.Context, tx *ledger.Tx) ([]projection.Queue, error) {
	if l.at.IsNow() {
		return projection.Queues(ctx, tx)
	}
	return projection.QueuesAsOf(ctx, tx, l.at)
}

// count counts the jobs of the moment, and returns how many there are now.
func (l *look) count(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue) (
	now map[string]map[event.State]int64, err error) {
	if l.at.IsNow() {
		return countNow(ctx, tx, byName, l.at.At)
	}
	c, err := countJobs(ctx, tx, l.at)
	if err != nil {
		return nil, err
	}
	for queue, ended := range c.ended {
		for state, n := range ended {
			statusOf(byName, queue).Jobs[state] = n
		}
	}
	left, err := projection.HasLeft(ctx, tx) // all of these had ended before the moment
	if err != nil {
		return nil, err
	}
	for queue, ended := range left.By {
		for state, n := range ended {
			statusOf(byName, queue).Jobs[state] += n
		}
	}
	if c.whole {
		l.open, err = projection.JobsAsOf(ctx, tx, c.open, l.at)
	} else {
		l.open, err = projection.OpenJobsAsOf(ctx, tx, l.at)
	}
	for _, j := range l.open {
		if !c.whole || !j.State.Final() {
			statusOf(byName, j.Queue).count(j, l.at.At)
		}
	}
	return c.now, err
}

// countNow is count of now, by indexes. TestStatusNowEqualsTail compares it with the count of a moment.
func countNow(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue, at time.Time) (
	now map[string]map[event.State]int64, err error) {
	c, err := countJobs(ctx, tx, projection.Moment{})
	if err != nil {
		return nil, err
	}
	for queue, counts := range c.now {
		statusOf(byName, queue).Jobs = maps.Clone(counts)
	}
	var n, scheduled, retrying, first, next, overdue int64
	err = eachQueue(ctx, tx, byName, func(s *Queue) {
		s.Ready, s.Scheduled, s.Retrying = n, scheduled, retrying
		s.OldestReady, s.NextRunAt = event.FromMicros(first), event.FromMicros(next)
	}, []any{&n, &scheduled, &retrying, &first, &next}, queuedNow, event.Micros(at))
	if err != nil {
		return nil, err
	}
	err = eachQueue(ctx, tx, byName, func(s *Queue) {
		s.Expired, s.OldestLease, s.Overdue = n, event.FromMicros(first), overdue
	}, []any{&n, &first, &overdue}, expiredNow, event.Micros(at), event.Micros(at.Add(-sweepDelay)))
	return c.now, err
}

// AbsentAsOf returns which jobs Queues does not count because they have left. Jobs of the past are counted as
// of the moment, unless their queues are not known.
func AbsentAsOf(ctx context.Context, tx *ledger.Tx, past bool) (a projection.Absent, err error) {
	if a, err = projection.AbsentOf(ctx, tx, nil, nil); err != nil || !past {
		return a, err
	}
	left, err := projection.HasLeft(ctx, tx)
	if a.Counted = left.Unnamed == 0; !a.Counted {
		a.Jobs = left.Unnamed
	}
	return a, err
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
	var queue int64
	return table.Each(rows, err, append([]any{&queue}, columns...), func() error {
		name, err := tx.NameOf(ctx, queue)
		if err != nil {
			return err
		}
		take(statusOf(byName, name))
		return nil
	})
}

var activity = event.SQL(`SELECT j.queue, e.kind, count(*) FROM events e JOIN jobs j ON j.n = e.job
WHERE e.pos > ? AND e.pos <= ? AND e.kind IN ({enqueued}, {claimed}, {succeeded}, {failed},
    {released}, {reclaimed}, {cancelled}, {refused}) GROUP BY j.queue, e.kind`)

// countActivity counts the events after the pos after, up to until.
func countActivity(ctx context.Context, tx *ledger.Tx, byName map[string]*Queue, after,
	until int64) error {
	var kind, n int64
	add := func(s *Queue) { s.LastHour.Count(event.Kind(kind), n) }
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

// Count adds n events of a kind; those of other kinds are not counted.
func (a *Activity) Count(kind event.Kind, n int64) {
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

// count adds a job.
func (s *Queue) count(j projection.Job, now time.Time) {
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
		grace := time.Duration(0)
		if !j.HeartbeatAt.IsZero() {
			grace = j.LeaseUntil.Sub(j.HeartbeatAt)
		}
		if now.Sub(j.LeaseUntil) >= grace+sweepDelay {
			s.Overdue++
		}
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
