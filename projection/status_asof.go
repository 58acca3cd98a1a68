package projection

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
)

// StatusThen is how things stood in one queue, and how many jobs it has now.
type StatusThen struct {
	QueueStatus
	Now map[ledger.State]int64
}

// standing is every row of jobs in one text: its queue and state as one number; below zero if it was not there then;
// and behind the job's own number if it had not ended then. An index for the numbers of finished jobs would cost every
// transition. One text instead of a row for each takes half the time, and counting in SQL, which would sort them, three
// times as long.
const standing = `SELECT group_concat(CASE WHEN finished_at < ?2 THEN queue * 64 + state WHEN n > ?1 THEN -queue * 64 - state
    ELSE n || ':' || (queue * 64 + state) END) FROM jobs`

// StatusAsOf returns what Status would have returned at m, and the numbers of now. It reads every row of jobs once,
// and the events of the jobs that were open at m.
func StatusAsOf(ctx context.Context, tx *ledger.Tx, m Moment) ([]StatusThen, error) {
	then, now := make(map[string]*QueueStatus), make(map[string]map[ledger.State]int64)
	open, err := countStanding(ctx, tx, m, then, now)
	if err != nil {
		return nil, err
	}
	jobs, err := jobsAsOf(ctx, tx, open, m)
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
	known, err := queuesAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	var all []StatusThen
	for _, s := range sortedStatus(then, known) {
		all = append(all, StatusThen{QueueStatus: s, Now: now[s.Name]})
	}
	return all, nil
}

// countStanding counts the jobs of now, and of then those that had ended. It returns the numbers of the others.
func countStanding(ctx context.Context, tx *ledger.Tx, m Moment, then map[string]*QueueStatus, now map[string]map[ledger.State]int64) (open []int64, err error) {
	var text sql.NullString
	if err := scanOne(ctx, tx, standing, []any{&text}, m.Pos, m.next); err != nil || !text.Valid {
		return nil, err
	}
	thenBy, nowBy := make(map[int64]int64), make(map[int64]int64)
	for part := range strings.SplitSeq(text.String, ",") {
		number, code, opened := strings.Cut(part, ":")
		if !opened {
			code = number
		}
		c, err := strconv.ParseInt(code, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: jobs: %w", ledger.ErrDamaged, err)
		}
		switch {
		case c < 0:
			c = -c
		case opened:
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%w: jobs: %w", ledger.ErrDamaged, err)
			}
			open = append(open, n)
		default:
			thenBy[c]++
		}
		nowBy[c]++
	}
	for c, count := range nowBy {
		queue, err := tx.NameOf(ctx, c/64)
		if err != nil {
			return nil, err
		}
		state := ledger.State(c % 64)
		if now[queue] == nil {
			now[queue] = make(map[ledger.State]int64)
		}
		now[queue][state] = count
		if thenBy[c] > 0 {
			statusOf(then, queue).Jobs[state] = thenBy[c]
		}
	}
	slices.Sort(open)
	return open, nil
}

// count adds a job that is known in full.
func (s *QueueStatus) count(j Job, now time.Time) {
	s.Jobs[j.State]++
	switch {
	case j.State == ledger.Queued && j.RunAt.After(now):
		s.Scheduled++
		s.NextRunAt = earliest(s.NextRunAt, j.RunAt)
	case j.State == ledger.Queued:
		s.Ready++
		s.OldestReady = earliest(s.OldestReady, j.RunAt)
	case j.State.Held() && !j.LeaseUntil.After(now):
		s.Expired++
		s.OldestLease = earliest(s.OldestLease, j.LeaseUntil)
	}
	if j.State == ledger.Queued && j.Failures > 0 {
		s.Retrying++
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// queuesAsOf returns what Queues would have returned at m. The events of queues are few and found by themselves.
func queuesAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (found []Queue, err error) {
	if m.Pos == 0 {
		return nil, nil
	}
	byName := make(map[string]Queue)
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.KindQueuePaused, ledger.KindQueueResumed}, Until: m.Pos}) {
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

// queueOf is the queue that e pauses or resumes.
func queueOf(e ledger.Event) string {
	switch b := e.Body.(type) {
	case *ledger.QueuePaused:
		return b.Queue
	case *ledger.QueueResumed:
		return b.Queue
	}
	return ""
}
