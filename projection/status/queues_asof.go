package status

import (
	"context"
	"slices"
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

// QueuesAsOf returns what Queues would have returned at m, and the counts of now. Jobs that have left the
// ledger since count at m, and not now. If some of the hour before m has left, the error is a
// projection.ArchivedError. It reads the events of the jobs that had not ended at m, and counts from the
// keyframes before m and now; without these, from every row of jobs.
func QueuesAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) ([]QueueThen, error) {
	then := make(map[string]*Queue)
	c, err := countJobs(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	for queue, ended := range c.ended {
		for state, n := range ended {
			statusOf(then, queue).Jobs[state] = n
		}
	}
	left, err := projection.HasLeft(ctx, tx) // all of these had ended before m
	if err != nil {
		return nil, err
	}
	for queue, ended := range left.By {
		for state, n := range ended {
			statusOf(then, queue).Jobs[state] += n
		}
	}
	var jobs map[int64]projection.Job
	if c.whole {
		jobs, err = projection.JobsAsOf(ctx, tx, c.open, m)
	} else {
		jobs, err = projection.OpenJobsAsOf(ctx, tx, m)
	}
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if !c.whole || !j.State.Final() {
			statusOf(then, j.Queue).count(j, m.At)
		}
	}
	if err := addLostClaims(ctx, tx, then, m); err != nil {
		return nil, err
	}
	hourBefore, err := tx.PosAt(ctx, m.At.Add(-time.Hour))
	if err == nil {
		err = projection.AfterHorizon(ctx, tx, hourBefore)
	}
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
		all = append(all, QueueThen{Queue: s, Now: c.now[s.Name], open: jobs})
	}
	return all, nil
}

// AbsentAsOf returns which jobs Queues does not count, or with past QueuesAsOf: there they are counted as of
// the moment, unless it is not known in which queues they were.
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

// AsOf returns what QueuesAsOf, with AddStrandedAsOf, and WorkersAsOf, without all, return for m. It reads
// the jobs that had not ended then, and the worker processes, once for both.
func AsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (queues []QueueThen, workers []Worker,
	err error) {
	if queues, err = QueuesAsOf(ctx, tx, m); err != nil {
		return nil, nil, err
	}
	var open map[int64]projection.Job
	if len(queues) > 0 {
		open = queues[0].open
	}
	held := heldAmong(open)
	if err := setErased(ctx, tx, held); err != nil {
		return nil, nil, err
	}
	all, err := listWorkers(ctx, tx, held, m, true)
	if err != nil {
		return nil, nil, err
	}
	if anyHasWaited(queues, m) {
		if err := addStrandedAmong(ctx, tx, queues, all, m); err != nil {
			return nil, nil, err
		}
	}
	workers = slices.DeleteFunc(all, func(w Worker) bool { return w.forgotten(m.At) })
	return queues, workers, seenAfterHorizon(ctx, tx, workers)
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
