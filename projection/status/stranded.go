package status

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// Stranded counts ready jobs of one queue, version and set of labels that no live worker may take.
type Stranded struct {
	Queue    string
	Version  string
	Requires []string
	Jobs     int64
	Since    time.Time // the run_at of the one that has waited for longest
	Service
}

// StrandedJobs returns the jobs that have been ready for longer than patience at now and that are not served,
// as Service defines it. Paused queues are left out.
func StrandedJobs(ctx context.Context, tx *ledger.Tx, now time.Time, patience time.Duration) (
	found []Stranded, err error) {
	known, err := projection.Queues(ctx, tx)
	if err != nil {
		return nil, err
	}
	paused := make(map[string]bool)
	for _, q := range known {
		paused[q.Name] = q.Paused
	}
	workforce, err := WorkforceNow(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	lanes, err := ReadyLanes(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	return workforce.stranded(lanes, paused, now, patience), nil
}

// stranded returns what is stranded among lanes.
func (f Workforce) stranded(lanes []ReadyLane, paused map[string]bool, now time.Time,
	patience time.Duration) (found []Stranded) {
	for _, l := range lanes {
		if paused[l.Queue] || now.Sub(l.Since) < patience {
			continue
		}
		s := Stranded{Queue: l.Queue, Version: l.Version, Requires: l.Requires, Jobs: l.Jobs, Since: l.Since}
		if s.Service = f.ServiceOf(s.Queue, s.Version, s.Requires); !s.Served() {
			found = s.addTo(found)
		}
	}
	return found
}

// AddStranded sets Stranded in the statuses of queues. It looks at workers only if a job has waited for a
// minute.
func AddStranded(ctx context.Context, tx *ledger.Tx, queues []Queue, now time.Time) error {
	if !slices.ContainsFunc(queues, func(q Queue) bool { return q.hasWaited(now) }) {
		return nil
	}
	found, err := StrandedJobs(ctx, tx, now, time.Minute)
	for _, s := range found {
		for i := range queues {
			if q := &queues[i]; q.Name == s.Queue {
				q.Stranded = append(q.Stranded, s)
			}
		}
	}
	return err
}

// AddStrandedAsOf is AddStranded for the statuses that QueuesAsOf returned for m.
func AddStrandedAsOf(ctx context.Context, tx *ledger.Tx, queues []QueueThen, m projection.Moment) error {
	if !anyHasWaited(queues, m) {
		return nil
	}
	workers, err := listWorkers(ctx, tx, heldAmong(queues[0].open), m, true)
	if err != nil {
		return err
	}
	return addStrandedAmong(ctx, tx, queues, workers, m)
}

// addStrandedAmong is AddStrandedAsOf where all worker processes as of m are known.
func addStrandedAmong(ctx context.Context, tx *ledger.Tx, queues []QueueThen, workers []Worker,
	m projection.Moment) error {
	open, paused := queues[0].open, make(map[string]bool)
	for _, q := range queues {
		paused[q.Name] = q.Paused
	}
	workforce := Workforce{workers: workers}
	if err := workforce.addUnannounced(ctx, tx, m); err != nil {
		return err
	}
	for _, s := range workforce.stranded(ReadyLanesAmong(open, m.At), paused, m.At, time.Minute) {
		i := slices.IndexFunc(queues, func(q QueueThen) bool { return q.Name == s.Queue })
		queues[i].Stranded = append(queues[i].Stranded, s)
	}
	return nil
}

// anyHasWaited reports whether a job of any queue may be stranded at m.
func anyHasWaited(queues []QueueThen, m projection.Moment) bool {
	return slices.ContainsFunc(queues, func(q QueueThen) bool { return q.hasWaited(m.At) })
}

// hasWaited reports whether a job of q has been ready for a minute at now, and may be claimed.
func (q *Queue) hasWaited(now time.Time) bool {
	return !q.Paused && !q.OldestReady.IsZero() && now.Sub(q.OldestReady) >= time.Minute
}

// addTo adds s to found, merging entries that differ in priority only.
func (s *Stranded) addTo(found []Stranded) []Stranded {
	for i := range found {
		f := &found[i]
		if f.Queue == s.Queue && f.Version == s.Version && slices.Equal(f.Requires, s.Requires) {
			f.Jobs += s.Jobs
			if s.Since.Before(f.Since) {
				f.Since = s.Since
			}
			return found
		}
	}
	return append(found, *s)
}
