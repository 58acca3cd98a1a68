package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// Sweeper takes back jobs whose lease ran out. It is apart from claiming, and it is slow to judge: a lease is
// reclaimed only if token and lease end are still the same some grace after the Sweeper first saw them expired,
// on its own monotonic clock. So a jump of the wall clock, or a lock holder that froze and kept every heartbeat
// out, costs no live job. It is for one goroutine.
type Sweeper struct {
	Service *Service
	Actor   string         // "sweeper:…"
	Batch   int            // jobs per transaction; default and most 100
	Pause   time.Duration  // between batches; default 10ms
	Grace   *time.Duration // nil: two thirds of the job's own lease, two beats

	seen map[int64]sighting // by the job's number
}

type sighting struct {
	token      string
	leaseUntil time.Time
	first      time.Time // with the monotonic reading
	grace      time.Duration
}

// SweepReport says what a sweep saw and did.
type SweepReport struct {
	Expired   int           // leases that are over now
	Waiting   int           // of these, still within their grace
	Wait      time.Duration // until the last of these is through
	Reclaimed []projection.Job
}

// maxLockWait is the longest wait for the write lock with which what was seen still counts: heartbeats may have
// waited behind the same lock.
const maxLockWait = 250 * time.Millisecond

// errLate makes the looking start over.
var errLate = errors.New("the write lock was late")

// Sweep looks once and reclaims what has been through its grace: in batches, with a pause, until none is left. Jobs
// that cannot be reclaimed, because the ledger is damaged there, are left alone and told in the error; then the
// report holds for the others.
func (w *Sweeper) Sweep(ctx context.Context) (SweepReport, error) {
	var report SweepReport
	if err := CheckActor(w.Actor); err != nil {
		return report, err
	}
	bad := make(map[int64]error)
	for {
		batch, err := w.look(ctx, &report, bad)
		if err != nil {
			return report, err
		}
		if len(batch) == 0 {
			var errs []error
			for _, n := range slices.Sorted(maps.Keys(bad)) {
				errs = append(errs, bad[n])
			}
			return report, errors.Join(errs...)
		}
		failpoint.Hit("looked")
		reclaimed, err := w.reclaim(ctx, batch, bad)
		report.Reclaimed = append(report.Reclaimed, reclaimed...)
		if err != nil {
			w.seen = nil // heartbeats may have waited too
		}
		if errors.Is(err, errLate) {
			continue
		}
		if err != nil {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(w.pause()):
		}
	}
}

func (w *Sweeper) pause() time.Duration {
	if w.Pause == 0 {
		return 10 * time.Millisecond
	}
	return w.Pause
}

func (w *Sweeper) batch() int {
	if w.Batch <= 0 || w.Batch > 100 {
		return 100
	}
	return w.Batch
}

// maxLook bounds how many expired leases one look takes in.
const maxLook = 10_000

// look reads the expired leases, remembers them, and returns a batch of those that have been through their grace.
func (w *Sweeper) look(ctx context.Context, report *SweepReport, bad map[int64]error) (batch []projection.Lease, err error) {
	var expired []projection.Lease
	err = w.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		expired, err = projection.Expired(ctx, tx, tx.Now(), maxLook)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	now, seen := time.Now(), make(map[int64]sighting, len(expired))
	report.Expired, report.Waiting, report.Wait = len(expired), 0, 0
	for _, l := range expired {
		s, known := w.seen[l.N]
		if !known || s.token != l.Token || !s.leaseUntil.Equal(l.Until) {
			s = sighting{l.Token, l.Until, now, w.grace(l)}
		}
		seen[l.N] = s
		switch left := s.grace - now.Sub(s.first); {
		case bad[l.N] != nil:
		case left > 0:
			report.Waiting++
			report.Wait = max(report.Wait, left)
		case len(batch) < w.batch():
			batch = append(batch, l)
		}
	}
	w.seen = seen
	return batch, nil
}

func (w *Sweeper) grace(l projection.Lease) time.Duration {
	if w.Grace != nil {
		return *w.Grace
	}
	lease := l.Until.Sub(l.HeartbeatAt)
	if lease < MinLease { // cut short by a max runtime, or the clock ran back between the two: nobody knows
		lease = DefaultLease
	}
	return lease * 2 / 3
}

// reclaim takes the batch back. Where that fails as a whole, one row of it is to blame: then each is taken back by
// itself, and what goes wrong with one goes into bad.
func (w *Sweeper) reclaim(ctx context.Context, batch []projection.Lease, bad map[int64]error) (reclaimed []projection.Job, err error) {
	reclaimed, err = w.together(ctx, batch)
	if err == nil || errors.Is(err, errLate) || storeFailed(err) {
		return reclaimed, err
	}
	for i, l := range batch {
		one, err := w.together(ctx, batch[i:i+1])
		switch {
		case errors.Is(err, errLate) || storeFailed(err):
			return reclaimed, err
		case err != nil:
			bad[l.N] = fmt.Errorf("sweep: job %s: %w", l.ID, err)
		}
		reclaimed = append(reclaimed, one...)
	}
	return reclaimed, nil
}

// together reclaims in one transaction, each job judged again and by its own compare-and-swap.
func (w *Sweeper) together(ctx context.Context, batch []projection.Lease) (reclaimed []projection.Job, err error) {
	err = w.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		reclaimed = nil
		if tx.Waited() > maxLockWait {
			return errLate
		}
		for _, l := range batch {
			after, err := carryOut(ctx, tx, w.Actor, projection.Job{ID: l.ID}, Reclaim{Token: l.Token, LeaseUntil: l.Until})
			if errors.Is(err, errEvidenceStale) {
				continue // a heartbeat or an end came first
			}
			if err != nil {
				return err
			}
			reclaimed = append(reclaimed, after)
			failpoint.Hit("reclaimed")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, j := range reclaimed {
		delete(w.seen, j.N)
	}
	return reclaimed, nil
}

// Run sweeps now and then every so often, until ctx ends. report is called after each sweep.
func (w *Sweeper) Run(ctx context.Context, every time.Duration, report func(SweepReport, error)) {
	for {
		r, err := w.Sweep(ctx)
		if ctx.Err() != nil && len(r.Reclaimed) == 0 {
			return
		}
		report(r, err)
		wait := every
		if r.Waiting > 0 {
			wait = min(every, max(r.Wait, 100*time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
