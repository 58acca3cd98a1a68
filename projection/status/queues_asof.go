package status

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// QueueThen is the status of one queue at a moment, and how many jobs it has now.
type QueueThen struct {
	Queue
	Now map[event.State]int64

	open map[int64]projection.Job // of all queues, see projection.OpenJobsAsOf
}

// QueuesAsOf returns what Queues would have returned at m, and the counts of now. It reads every row of jobs,
// and the events of the jobs that had not ended at m.
func QueuesAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) ([]QueueThen, error) {
	then, now := make(map[string]*Queue), make(map[string]map[event.State]int64)
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
	jobs, err := projection.OpenJobsAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		statusOf(then, j.Queue).count(j, m.At)
	}
	if err := addLostClaims(ctx, tx, then, m); err != nil {
		return nil, err
	}
	hourBefore, err := tx.PosAt(ctx, m.At.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	if err := countActivity(ctx, tx, then, hourBefore, m.Pos); err != nil {
		return nil, err
	}
	known, err := projection.QueuesAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	var all []QueueThen
	for _, s := range sortedStatus(then, known) {
		all = append(all, QueueThen{Queue: s, Now: now[s.Name], open: jobs})
	}
	return all, nil
}

// jobCounts scans the table: an index for the counts of ended jobs would cost every transition. Counting here
// costs some 20 ms per 60,000 jobs more than packing the rows into one text and counting in Go, a tenth of
// the command.
const jobCounts = `SELECT queue, state, count(*), count(CASE WHEN finished_at < ? THEN 1 END) FROM jobs
GROUP BY queue, state`

// countJobs calls take for each queue and state with the number of jobs, and how many of them had ended so by
// m.
func countJobs(ctx context.Context, tx *ledger.Tx, m projection.Moment,
	take func(queue string, state event.State, jobs, ended int64)) error {
	rows, err := tx.Query(ctx, jobCounts, m.FinishedBefore())
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
