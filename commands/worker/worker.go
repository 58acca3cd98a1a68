package worker

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
)

// Worker claims jobs and works on them. Fill in the fields and call Run once.
type Worker struct {
	Service *commands.Service
	Handler Handler       // what to do with a job; exactly one of Handler and
	Command *Command      // Command
	Process ledger.Worker // this process: a name, and a fresh ULID as Boot

	Queues       []string      // required
	Capabilities []string      // labels that jobs may require
	Slots        int           // jobs at a time; default 1
	Lease        time.Duration // how long a claim holds without a heartbeat; default 1m. Heartbeats come every third of it
	MaxRuntime   time.Duration // the most that any job may run; 0: as the job says
	Poll         time.Duration // how often an idle worker looks for work without having been woken; default 5s
	SweepEvery   time.Duration // how often it looks for lost leases; default 15s; negative: never
	MaxJobs      int           // stop after so many; 0: no end
	Drain        bool          // stop when nothing is ready
	Log          *slog.Logger  // default: discards
	Hooks        Hooks

	mu   sync.Mutex
	stop chan struct{} // made when first needed, so that the zero value works
}

// Stats says what a worker did.
type Stats struct {
	Claimed   int // jobs
	Succeeded int // of these, recorded as such; likewise:
	Failed    int
	Released  int
	Lost      int // ended by somebody else, or not recorded in time
}

// Stop makes Run claim no more, wait for the jobs under way, and return. It may be called more than once.
func (w *Worker) Stop() {
	stop := w.stopChannel()
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-stop:
	default:
		close(stop)
	}
}

func (w *Worker) stopChannel() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		w.stop = make(chan struct{})
	}
	return w.stop
}

// lastWrites is how long a worker that is to end at once tries to record what became of its jobs.
const lastWrites = 10 * time.Second

// Run works until Stop is called, MaxJobs have ended, or, with Drain, nothing is ready. When ctx ends it stops the
// jobs under way as well and releases them, which is no failure.
//
// Errors: a *StartError when the command cannot be run; a *commands.InvalidError for a name, queue or label that no
// claim could have; ledger.ErrReplaced and the like when the ledger is gone.
// That the ledger is busy or the disk full is no reason to end: it tries again.
func (w *Worker) Run(ctx context.Context) (Stats, error) {
	l, err := w.newLoop(ctx)
	if err != nil {
		return Stats{}, err
	}
	if err := l.request(1).Check(); err != nil { // no claim would ever be allowed
		return Stats{}, err
	}
	if w.Command != nil {
		if err := w.Command.Check(); err != nil {
			return Stats{}, err
		}
	}
	if err := w.Service.WorkerStarted(ctx, w.Process, w.Queues, w.Capabilities); err != nil {
		return Stats{}, err
	}
	l.presentAt = time.Now()
	sweeping, stopSweeping := context.WithCancel(ctx)
	var sweeper sync.WaitGroup
	if w.SweepEvery >= 0 {
		sweeper.Go(func() { w.sweep(sweeping) })
	}
	err = l.run(ctx)
	stopSweeping()
	sweeper.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
	defer cancel()
	if stopErr := w.Service.WorkerStopped(last, w.Process); err == nil {
		err = stopErr
	}
	return l.stats, err
}

func (w *Worker) sweep(ctx context.Context) {
	s := commands.Sweeper{Service: w.Service, Actor: "sweeper:" + w.Process.Name}
	s.Run(ctx, cmp.Or(w.SweepEvery, 15*time.Second), func(r commands.SweepReport, err error) {
		if err != nil {
			w.Log.Warn("sweep", "error", err)
		}
		for _, j := range r.Reclaimed {
			w.Log.Info("reclaimed", "job", j.ID, "reason", j.ErrorCode, "state", j.State)
		}
	})
}
