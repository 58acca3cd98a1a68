package projection

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Overdue counts leases that ended so long ago that a running sweeper would have reclaimed the jobs.
type Overdue struct {
	Leases int64
	Oldest time.Time // the end of the lease that has been over for longest
}

// overdueNow allows for the grace of a sweeper, which is shorter than one more lease.
const overdueNow = `SELECT count(*), coalesce(min(lease_expires_at), 0) FROM jobs
WHERE lease_expires_at <= ?1 AND 2 * lease_expires_at - coalesce(heartbeat_at, lease_expires_at) <= ?1`

// OverdueLeases counts leases that ended more than their own length and slack before now.
func OverdueLeases(ctx context.Context, tx *ledger.Tx, now time.Time, slack time.Duration) (o Overdue,
	err error) {
	var oldest int64
	err = table.ScanOne(ctx, tx, overdueNow, []any{&o.Leases, &oldest}, event.Micros(now.Add(-slack)))
	o.Oldest = event.FromMicros(oldest)
	return o, err
}

// Stranded counts ready jobs of one queue, version and set of labels that no live worker may take.
type Stranded struct {
	Queue    string
	Version  string
	Requires []string
	Jobs     int64
	Since    time.Time // the run_at of the one that has waited for longest
	Service
}

const readyLanes = `SELECT queue, lane, count(*), min(run_at) FROM jobs
WHERE lane IS NOT NULL AND run_at <= ? GROUP BY queue, lane`

// StrandedJobs returns the jobs that have been ready for longer than patience at now and that are not served,
// as Service defines it. Paused queues are left out.
func StrandedJobs(ctx context.Context, tx *ledger.Tx, now time.Time, patience time.Duration) (
	found []Stranded, err error) {
	known, err := Queues(ctx, tx)
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
	rows, err := tx.Query(ctx, readyLanes, event.Micros(now))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Stranded
		var queue, since int64
		var text string
		if err := rows.Scan(&queue, &text, &s.Jobs, &since); err != nil {
			return nil, err
		}
		if s.Queue, err = tx.NameOf(ctx, queue); err != nil {
			return nil, err
		}
		if _, s.Version, s.Requires, err = parseLane(text); err != nil {
			return nil, err
		}
		s.Since = event.FromMicros(since)
		if paused[s.Queue] || now.Sub(s.Since) < patience {
			continue
		}
		if s.Service = workforce.ServiceOf(s.Queue, s.Version, s.Requires); !s.Served() {
			found = s.addTo(found)
		}
	}
	return found, rows.Err()
}

// AddStranded sets Stranded in the statuses of queues. It looks at workers only if a job has waited for a
// minute.
func AddStranded(ctx context.Context, tx *ledger.Tx, queues []QueueStatus, now time.Time) error {
	if !slices.ContainsFunc(queues, func(q QueueStatus) bool {
		return !q.Paused && !q.OldestReady.IsZero() && now.Sub(q.OldestReady) >= time.Minute
	}) {
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
