package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/process"
)

// Worker claims jobs and works on them. Fill in the fields and call Run or Finish once; do not copy it. A
// field that is not required has a default. Stop may be called from any goroutine, also before Run.
type Worker struct {
	Service *commands.Service
	Backend Backend  // in place of Service: a ledger behind a server, such as a *remote.Client
	Handler Handler  // does the work; exactly one of Handler and Command is required
	Command *Command // runs a program that does the work

	// Process is this process, as the ledger names it. Defaults: Host and PID of this process, a new ULID as
	// Boot, and HOST-PID as Name. A Name that outlives the process makes a worker's history easier to read. A
	// server takes only a ULID as Boot.
	Process event.Worker

	// Also is called at the end of each sweep: see commands.Sweeper. nil: nothing.
	Also func(context.Context) error

	Queues       []string      // required, unless Handler is a Mux: then those that it has handlers for
	Capabilities []string      // labels that jobs may require
	Slots        int           // jobs that run at the same time; default 1
	Lease        time.Duration // how long a claim holds without a heartbeat, sent every third of it; default 1m
	MaxRuntime   time.Duration // bounds the runtime of every job; default 0: only the job's own limit holds
	Poll         time.Duration // how often an idle worker that is not notified polls; default 5s
	SweepEvery   time.Duration // of expired leases; default 15s; negative: none, and no schedule ticks
	MaxJobs      int           // stop after this many jobs; default 0: no limit
	Drain        bool          // stop when no job is ready
	SoftStop     time.Duration // how long jobs run on after the end of Run's ctx; default 0; negative: for ever
	StopTimeout  time.Duration // how long a Handler that must stop may run on; default 10s; negative: for ever
	Log          *slog.Logger  // default: discards
	Hooks        Hooks

	running atomic.Bool // Run or Finish has not returned

	mu   sync.Mutex
	stop chan struct{} // closed by Stop; made when first needed, so that the zero value works
}

// Stats counts the jobs that a worker claimed, and how these claims ended.
type Stats struct {
	Claimed   int
	Succeeded int
	Failed    int
	Released  int
	Lost      int // ended by another process, or not recorded in time
	Cancelled int // by an operator
	Stuck     int // of them, those whose Handler did not stop within StopTimeout, or gave its slot
}

// Stop makes Run claim no more jobs, wait for those that are running, and return. It may be called more than
// once.
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

// nameProcess fills in what w.Process leaves out.
func (w *Worker) nameProcess() {
	p := &w.Process
	if p.Host == "" {
		p.Host, _ = os.Hostname() // without a name, the ledger has none
	}
	p.PID = cmp.Or(p.PID, os.Getpid())
	p.Boot = cmp.Or(p.Boot, process.NewBoot())
	p.Name = cmp.Or(p.Name, fmt.Sprintf("%s-%d", cmp.Or(p.Host, "worker"), p.PID))
}

// Errors of Run and Finish that say how a Worker was used.
var (
	ErrStarted = errors.New("worker: it is running already")
	ErrStopped = errors.New("worker: it was stopped; make another one")
)

// begin marks w as running; end must be called then.
func (w *Worker) begin() (end func(), err error) {
	if !w.running.CompareAndSwap(false, true) {
		return nil, ErrStarted
	}
	return func() { w.running.Store(false) }, nil
}

// lastWrites is how long a worker whose context has ended tries to record the ends of its jobs.
const lastWrites = 10 * time.Second

// Run works until Stop is called, MaxJobs have ended, or, with Drain, no job is ready. When ctx ends, Run
// claims no more, lets the running jobs run for SoftStop, then stops them and releases them, which does not
// count as a failure.
//
// Run waits for no Handler longer than StopTimeout after that was asked to stop. If one still runs, Run
// returns a [*StuckError]. The jobs of a worker that stops are released by then, to run when their leases
// would have ended; a job whose max runtime is over is taken back when its lease has ended.
//
// A Worker runs once at a time: a second Run returns [ErrStarted], and one after Stop [ErrStopped]. After a
// drain, or MaxJobs, it may run again. A ctx that has already ended is treated as one that ends at once.
//
// It returns a [*StartError] if the command cannot be run, a [*commands.InvalidError] if no claim with these
// names, queues or labels is valid, and [ledger.ErrReplaced], [ledger.ErrClosed] or [ledger.ErrDamaged] if
// the ledger is gone. A busy ledger or a full disk does not end it: Run retries with backoff.
func (w *Worker) Run(ctx context.Context) (Stats, error) {
	end, err := w.begin()
	if err != nil {
		return Stats{}, err
	}
	defer end()
	select {
	case <-w.stopChannel():
		return Stats{}, ErrStopped
	default:
	}
	l, err := w.newLoop(ctx)
	if err != nil {
		return Stats{}, err
	}
	if err := l.request(1).Check(); err != nil {
		return Stats{}, err
	}
	if w.Command != nil {
		if err := w.Command.Check(); err != nil {
			return Stats{}, err
		}
	}
	if ctx.Err() != nil {
		return Stats{}, nil
	}
	err = ledger.ErrUnknown // the connection broke at the commit: said twice, it is as true
	for tries := 0; tries < 5 && errors.Is(err, ledger.ErrUnknown); tries++ {
		err = l.backend.WorkerStarted(ctx, w.Process, w.Queues, w.Capabilities)
	}
	if err != nil {
		return Stats{}, err
	}
	l.presentAt = time.Now()
	sweeping, stopSweeping := context.WithCancel(l.ctx)
	var sweeper sync.WaitGroup
	if w.SweepEvery >= 0 && w.Service != nil { // else the server does it
		sweeper.Go(func() { w.sweep(sweeping) })
		t := w.ticker()
		if w.Drain { // what is due by now is part of what there is to do
			if _, err := t.Tick(ctx); err != nil && ctx.Err() == nil {
				w.logOf().Warn("schedules", "error", err)
			}
		}
		sweeper.Go(func() { t.Run(sweeping, w.logTicks) })
	}
	err = l.run(ctx)
	stopSweeping()
	sweeper.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
	defer cancel()
	if stopErr := l.backend.WorkerStopped(last, w.Process); err == nil {
		err = stopErr
	}
	return l.stats, err
}

func (w *Worker) ticker() *schedule.Ticker {
	return &schedule.Ticker{Service: w.Service, Actor: "sweeper:" + w.Process.Name,
		Poll: min(w.Poll, 5*time.Second)}
}

func (w *Worker) logTicks(done schedule.Ticked, err error) {
	log := w.logOf()
	if err != nil {
		log.Warn("schedules", "error", err)
	}
	for _, j := range done.Jobs {
		log.Info("scheduled", append(about(j), "schedule", j.Schedule)...)
	}
	if done.Skipped > 0 {
		log.Warn("ticks of schedules made no job", "ticks", done.Skipped)
	}
}

func (w *Worker) sweep(ctx context.Context) {
	s := commands.Sweeper{Service: w.Service, Actor: "sweeper:" + w.Process.Name, Also: w.Also}
	log := w.logOf()
	s.Run(ctx, cmp.Or(w.SweepEvery, 15*time.Second), func(r commands.SweepReport, err error) {
		if err != nil {
			log.Warn("sweep", "error", err)
		}
		for _, j := range r.Reclaimed {
			log.Info("reclaimed", append(about(j), "attempt", j.Attempt, "owner", j.Worker.Name,
				"reason", j.ErrorCode, "state", j.State.String())...)
		}
	})
}
