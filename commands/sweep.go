package commands

import (
	"cmp"
	"context"
	"time"

	"jobledger/commands/internal/sweep"
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

	// Also is called at the end of each Sweep, such as for an archive policy; nil: nothing. Run calls it in a
	// goroutine of its own, so that no job waits for it to be taken back.
	Also func(context.Context) error

	sweeper sweep.Sweeper
}

// SweepReport is what a sweep saw and did.
type SweepReport struct {
	Expired   int           // leases that have expired
	Waiting   int           // of these, those within their grace period
	Wait      time.Duration // until the last of these grace periods is over
	Reclaimed []projection.Job
}

// Sweep moves the rows of the inbox into the ledger. Then it reads the expired leases and reclaims those
// whose grace period is over, batch by batch, until none is left. Then it resolves what the ends of jobs mean
// for those that wait for them, adds the keyframes that are due and, once a minute where sealing is on, the
// blocks of the hash tree, and empties a -wal file that a long read let grow. Jobs that cannot be reclaimed,
// because the ledger is damaged there, are left alone and named in the error; the report is valid for the
// others.
func (w *Sweeper) Sweep(ctx context.Context) (SweepReport, error) { return w.sweep(ctx, w.Also) }

func (w *Sweeper) sweep(ctx context.Context, also func(context.Context) error) (SweepReport, error) {
	if err := CheckActor(w.Actor); err != nil {
		return SweepReport{}, err
	}
	if w.Service == nil || w.Service.Store == nil {
		return SweepReport{}, ErrNoStore
	}
	takenIn := w.Service.takeIn(ctx, true)
	report, err := w.sweeper.Sweep(ctx, sweep.Options{Store: w.Service.Store, Actor: w.Actor, Batch: w.Batch,
		Pause: w.Pause, Grace: w.Grace, SealStep: w.SealStep, Also: also,
		Reclaim: w.reclaim, StoreFailed: StoreFailed})
	return SweepReport(report), cmp.Or(err, takenIn)
}

// Run sweeps at once and then after every interval, or sooner if a grace period ends, until ctx is done. It
// calls report after each sweep, and for an error of Also. When it returns, Also has returned too.
func (w *Sweeper) Run(ctx context.Context, every time.Duration, report func(SweepReport, error)) {
	sweep.Run(ctx, every, w.Also, func() (sweep.Report, error) {
		r, err := w.sweep(ctx, nil)
		return sweep.Report(r), err
	}, func(r sweep.Report, err error) { report(SweepReport(r), err) })
}
