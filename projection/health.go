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
func OverdueLeases(ctx context.Context, tx *ledger.Tx, now time.Time, slack time.Duration) (o Overdue, err error) {
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
	Serving  []Worker  // live workers of the queue, none of which fits
}

const readyLanes = `SELECT queue, lane, count(*), min(run_at) FROM jobs
WHERE lane IS NOT NULL AND run_at <= ? GROUP BY queue, lane`

// StrandedJobs returns the jobs that have been ready for longer than patience at now and that no live worker
// may take. Paused queues are left out, and so are queues without worker processes from which jobs were
// claimed in the last hour: clients that do not announce themselves serve these.
func StrandedJobs(ctx context.Context, tx *ledger.Tx, now time.Time, patience time.Duration) (
	found []Stranded, err error) {
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
		if paused[s.Queue] || now.Sub(s.Since) < patience || !s.findServing(workers) {
			continue
		}
		if len(s.Serving) > 0 || !claimed[s.Queue] {
			found = s.addTo(found)
		}
	}
	return found, rows.Err()
}

// findServing sets Serving to the live workers of the queue, and reports whether none of them fits.
func (s *Stranded) findServing(workers []Worker) bool {
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
