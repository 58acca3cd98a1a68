// Package sweep is how a sweeper works: which expired leases it has reclaimed and when, batch by batch, and
// what it does besides. How a job is reclaimed is for its caller to say, which is package commands.
//
//	var s sweep.Sweeper
//	report, err := s.Sweep(ctx, sweep.Options{Store: store, Actor: "sweeper:x", Reclaim: reclaim})
//
// Files in reading order: sweep.go (one sweep), grace.go (what a sweeper has seen, and when it counts),
// upkeep.go (keyframes, blocks, dependencies, the -wal file), run.go (one sweep after another).
//
// Held by TestSweepReadsTwice, TestSweepClockRanBack, TestSweepInBatches and TestSweepAddsKeyframes of
// package commands.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// Sweeper is what a sweeper remembers between its sweeps. The zero Sweeper is ready. It is for use by one
// goroutine, and must not be copied.
type Sweeper struct {
	seen   map[int64]sighting // by the number of the job
	sealed time.Time          // when blocks were last looked for; zero: never, or more are missing
	_      noCopy
}

// noCopy makes go vet report copies of what has it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Options are the fields of commands.Sweeper, as the caller has set them, and how it reclaims.
type Options struct {
	Store    *ledger.Store
	Actor    string
	Batch    int
	Pause    time.Duration
	Grace    *time.Duration
	SealStep int
	Also     func(context.Context) error

	// Reclaim takes back the job of l in a transaction, in which it is read and judged again; done is false
	// where its claim is not as l has it any more.
	Reclaim func(ctx context.Context, tx *ledger.Tx, l projection.Lease) (after projection.Job, done bool,
		err error)
	// StoreFailed reports whether err is of the store, and not of what the ledger holds about a job.
	StoreFailed func(err error) bool
}

// Report is commands.SweepReport.
type Report struct {
	Expired   int
	Waiting   int
	Wait      time.Duration
	Reclaimed []projection.Job
}

// maxLockWait is the longest wait for the write lock after which what was seen still counts: heartbeats may
// have waited for the same lock.
const maxLockWait = 250 * time.Millisecond

// errLockLate means that the wait for the write lock was longer than maxLockWait: the sweep begins again.
var errLockLate = errors.New("the write lock was late")

// Sweep is commands.Sweeper.Sweep.
func (w *Sweeper) Sweep(ctx context.Context, o Options) (Report, error) {
	o.setDefaults()
	var report Report
	bad := make(map[int64]error)
	for {
		batch, err := w.nextBatch(ctx, &o, &report, bad)
		if err != nil {
			return report, err
		}
		if len(batch) == 0 {
			var errs []error
			for _, n := range slices.Sorted(maps.Keys(bad)) {
				errs = append(errs, bad[n])
			}
			errs = append(errs, resolve(ctx, o.Store, o.Actor, o.Pause), addKeyframes(ctx, o.Store),
				w.seal(ctx, &o), trimWAL(ctx, o.Store), o.also(ctx))
			return report, errors.Join(errs...)
		}
		failpoint.Hit("looked")
		reclaimed, err := w.reclaimOrIsolate(ctx, &o, batch, bad)
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
		case <-time.After(o.Pause):
		}
	}
}

func (o *Options) setDefaults() {
	if o.Batch <= 0 || o.Batch > 100 {
		o.Batch = 100
	}
	o.Pause = cmp.Or(o.Pause, 10*time.Millisecond)
	o.SealStep = cmp.Or(o.SealStep, 1<<15)
}

func (o *Options) also(ctx context.Context) error {
	if o.Also == nil {
		return nil
	}
	return o.Also(ctx)
}

// sealEvery is how often a sweeper adds the blocks that are missing, where sealing is on.
const sealEvery = time.Minute

// seal adds blocks of the hash tree that are missing, if it did not look of late.
func (w *Sweeper) seal(ctx context.Context, o *Options) error {
	if !w.sealed.IsZero() && time.Since(w.sealed) < sealEvery {
		return nil
	}
	w.sealed = time.Now()
	more, err := addBlocks(ctx, o.Store, int64(o.SealStep))
	if more {
		w.sealed = time.Time{}
	}
	return err
}
