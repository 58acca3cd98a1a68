package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"jobledger/commands/internal/upkeep"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// Sweeper reclaims jobs whose lease has expired. It reclaims a lease only if token and lease end are
// unchanged for a grace period after it first saw the lease expired, by its own monotonic clock. So no live
// job is lost when the wall clock jumps, or when a frozen process that holds the write lock keeps all
// heartbeats waiting. It is for use by one goroutine, and must not be copied.
type Sweeper struct {
	Service *Service
	Actor   string         // "sweeper:…"
	Batch   int            // jobs per transaction; 1 to 100; default 100
	Pause   time.Duration  // between batches; default 10ms
	Grace   *time.Duration // nil: two thirds of the job's own lease, which is two heartbeats
	// SealStep is how many events a sweep hashes at most, where sealing is on; default 32,768; negative: all.
	// They take 0.2 s of processor time, so a queue under full load gives about 1 % of it to sealing, and
	// what is left is sealed once there is less to do.
	SealStep int

	// Also is called at the end of each sweep, such as for an archive policy; nil: nothing. A sweep lasts until
	// it returns, so it does its work in small steps.
	Also func(context.Context) error

	seen   map[int64]sighting // by the number of the job
	sealed time.Time          // when blocks were last looked for; zero: never, or more are missing
	_      noCopy
}

// noCopy makes go vet report copies of what has it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// sighting is an expired lease as a Sweeper first saw it.
type sighting struct {
	token      string
	leaseUntil time.Time
	first      time.Time // with the monotonic reading
	grace      time.Duration
}

// SweepReport is what a sweep saw and did.
type SweepReport struct {
	Expired   int           // leases that have expired
	Waiting   int           // of these, those within their grace period
	Wait      time.Duration // until the last of these grace periods is over
	Reclaimed []projection.Job
}

// reclaim is the action of taking a job from an owner whose lease has expired. Token and LeaseUntil are what
// the sweeper saw.
type reclaim struct {
	Token      string
	LeaseUntil time.Time
}

func (reclaim) name() string { return "reclaim" }

// maxLockWait is the longest wait for the write lock after which what was seen still counts: heartbeats may
// have waited for the same lock.
const maxLockWait = 250 * time.Millisecond

// errLockLate means that the wait for the write lock was longer than maxLockWait: the sweep begins again.
var errLockLate = errors.New("the write lock was late")

// Sweep reads the expired leases and reclaims those whose grace period is over, batch by batch, until none is
// left. Then it resolves what the ends of jobs mean for those that wait for them, adds the keyframes that are
// due and, once a minute where sealing is on, the blocks of the hash tree, and empties a -wal file that a
// long read let grow. Jobs that cannot be reclaimed, because the ledger is damaged there, are left alone and
// named in the error; the report is valid for the others.
func (w *Sweeper) Sweep(ctx context.Context) (SweepReport, error) {
	var report SweepReport
	if err := CheckActor(w.Actor); err != nil {
		return report, err
	}
	bad := make(map[int64]error)
	for {
		batch, err := w.nextBatch(ctx, &report, bad)
		if err != nil {
			return report, err
		}
		if len(batch) == 0 {
			var errs []error
			for _, n := range slices.Sorted(maps.Keys(bad)) {
				errs = append(errs, bad[n])
			}
			store := w.Service.Store
			errs = append(errs, upkeep.Resolve(ctx, store, w.Actor, w.pause()), upkeep.AddKeyframes(ctx, store),
				w.seal(ctx), upkeep.TrimWAL(ctx, store), w.also(ctx))
			return report, errors.Join(errs...)
		}
		failpoint.Hit("looked")
		reclaimed, err := w.reclaimOrIsolate(ctx, batch, bad)
		report.Reclaimed = append(report.Reclaimed, reclaimed...)
		if err != nil {
			w.seen = nil // heartbeats may have waited too
		}
		if errors.Is(err, errLockLate) {
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

// seal adds blocks of the hash tree that are missing, if it did not look of late.
func (w *Sweeper) seal(ctx context.Context) error {
	if !w.sealed.IsZero() && time.Since(w.sealed) < sealEvery {
		return nil
	}
	w.sealed = time.Now()
	more, err := upkeep.Seal(ctx, w.Service.Store, int64(cmp.Or(w.SealStep, 1<<15)))
	if more {
		w.sealed = time.Time{}
	}
	return err
}

// sealEvery is how often a sweeper adds the blocks that are missing, where sealing is on.
const sealEvery = time.Minute

func (w *Sweeper) also(ctx context.Context) error {
	if w.Also == nil {
		return nil
	}
	return w.Also(ctx)
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

// maxExpired bounds how many expired leases are read at once.
const maxExpired = 10_000

// nextBatch reads the expired leases, remembers them, and returns a batch of those whose grace period is
// over.
func (w *Sweeper) nextBatch(ctx context.Context, report *SweepReport, bad map[int64]error) (
	batch []projection.Lease, err error) {
	var expired []projection.Lease
	err = w.Service.Store.Peek(ctx, func(tx *ledger.Tx) error {
		expired, err = projection.Expired(ctx, tx, tx.Now(), maxExpired)
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
	if lease < MinLease { // cut short by a max runtime, or the clock ran back: the real lease is unknown
		lease = DefaultLease
	}
	return lease * 2 / 3
}

// reclaimOrIsolate reclaims the batch in one transaction. If what the ledger holds makes that fail, each job
// is reclaimed in a transaction of its own, and the errors go into bad.
func (w *Sweeper) reclaimOrIsolate(ctx context.Context, batch []projection.Lease, bad map[int64]error) (
	reclaimed []projection.Job, err error) {
	reclaimed, err = w.reclaim(ctx, batch)
	if err == nil || errors.Is(err, errLockLate) || StoreFailed(err) {
		return reclaimed, err
	}
	for i, l := range batch {
		one, err := w.reclaim(ctx, batch[i:i+1])
		switch {
		case errors.Is(err, errLockLate) || StoreFailed(err):
			return reclaimed, err
		case err != nil:
			bad[l.N] = fmt.Errorf("sweep: job %s: %w", l.ID, err)
		}
		reclaimed = append(reclaimed, one...)
	}
	return reclaimed, nil
}

// reclaim reclaims a batch in one transaction. Each job is read and judged again in it.
func (w *Sweeper) reclaim(ctx context.Context, batch []projection.Lease) (
	reclaimed []projection.Job, err error) {
	err = w.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		reclaimed = nil
		if tx.Waited() > maxLockWait {
			return errLockLate
		}
		for _, l := range batch {
			c := reclaim{Token: l.Token, LeaseUntil: l.Until}
			after, err := apply(ctx, tx, w.Actor, projection.Job{ID: l.ID}, c)
			if errors.Is(err, errEvidenceStale) {
				continue // a heartbeat or an ending came first
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

// Run sweeps at once and then after every interval, or sooner if a grace period ends, until ctx is done. It
// calls report after each sweep.
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
