package projection

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Overdue are leases that ran out so long ago that a sweeper would have taken the jobs back.
type Overdue struct {
	Leases int64
	Oldest time.Time // the end of the lease that has been over for longest
}

// overdueNow allows for the grace, which is less than one more lease.
const overdueNow = `SELECT count(*), coalesce(min(lease_expires_at), 0) FROM jobs
WHERE lease_expires_at <= ?1 AND 2 * lease_expires_at - coalesce(heartbeat_at, lease_expires_at) <= ?1`

// OverdueLeases looks for leases that are over at now for one lease's time, and slack on top of it.
func OverdueLeases(ctx context.Context, tx *ledger.Tx, now time.Time, slack time.Duration) (o Overdue, err error) {
	var oldest int64
	err = table.ScanOne(ctx, tx, overdueNow, []any{&o.Leases, &oldest}, ledger.Micros(now.Add(-slack)))
	o.Oldest = ledger.FromMicros(oldest)
	return o, err
}

// Stranded are ready jobs of one queue, version and list of labels that no live worker may take.
type Stranded struct {
	Queue    string
	Version  string
	Requires []string
	Jobs     int64
	Since    time.Time // the run_at of the one that has waited for longest
	Serving  []Worker  // live workers of the queue, none of which fits
}

const readyLanes = `SELECT queue, lane, count(*), min(run_at) FROM jobs WHERE lane IS NOT NULL AND run_at <= ? GROUP BY queue, lane`

// StrandedJobs returns what has been ready for patience at now and fits no worker that is there, in no paused queue. A
// queue that no worker process serves, but from which jobs were claimed in the last hour, is served by somebody else.
func StrandedJobs(ctx context.Context, tx *ledger.Tx, now time.Time, patience time.Duration) (found []Stranded, err error) {
	workers, err := Workers(ctx, tx, now, false)
	if err != nil {
		return nil, err
	}
	queues, err := Status(ctx, tx, now)
	if err != nil {
		return nil, err
	}
	paused, claimed := make(map[string]bool), make(map[string]bool)
	for _, q := range queues {
		paused[q.Name], claimed[q.Name] = q.Paused, q.LastHour.Claimed > 0
	}
	rows, err := tx.Query(ctx, readyLanes, ledger.Micros(now))
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
		if s.Since = ledger.FromMicros(since); paused[s.Queue] || now.Sub(s.Since) < patience || !s.strand(workers) {
			continue
		}
		if len(s.Serving) > 0 || !claimed[s.Queue] {
			found = s.addTo(found)
		}
	}
	return found, rows.Err()
}

// strand reports whether none of the workers fits.
func (s *Stranded) strand(workers []Worker) bool {
	for _, w := range workers {
		if w.State != Working && w.State != Idle || !slices.Contains(w.Queues, s.Queue) {
			continue
		}
		if fits, _ := Fits(Job{Version: s.Version, Requires: s.Requires}, w.Version, w.Capabilities); fits {
			return false
		}
		s.Serving = append(s.Serving, w)
	}
	return true
}

// addTo adds s to those that differ in priority only.
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
