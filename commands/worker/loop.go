package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// loop is a Worker at work. All of it belongs to the goroutine of run, except for the two channels.
type loop struct {
	*Worker
	backend Backend
	ctx     context.Context // of the tasks; it ends with the cause ErrStopping
	abort   context.CancelCauseFunc
	runner  runner
	log     *slog.Logger // with the worker's name

	active  map[*task]bool // running now
	claimed chan *task     // to be run by the next free goroutine; has room for every slot
	done    chan taskEnd   // has room for every slot
	ends    []taskEnd      // to be recorded with the next group

	reported chan struct{} // a Handler has reported progress; has room for one

	unknown      []string  // the tokens of a claim whose outcome is not known; nil: there is none
	unknownAsked time.Time // when it was asked for

	poller       poller
	retry        retryState    // errors of the ledger since it answered last
	damagedRetry retryState    // errors about damaged jobs; it decides only what is logged
	backoff      time.Duration // the pause before the next try after an error; 0: none
	presentAt    time.Time     // when the presence of this process was recorded last
	unannounced  bool          // never record it

	stopped   bool      // claim no more
	abortAt   time.Time // when SoftStop is over; zero: it has not begun
	giveUpAt  time.Time // see startGivingUp
	stats     Stats
	lostCause error // why the last lost claim was lost
	damaged   error // a draining worker has found only damaged jobs
	fatal     error // the ledger is gone

	given int              // slots of Handlers that do not stop, which other jobs have
	stuck []projection.Job // whose Handlers are not waited for any more
	gone  chan struct{}    // closed when run has returned
}

// taskEnd is a task that has ended, with the command that records how; nil: there is nothing to record.
type taskEnd struct {
	task    *task
	command commands.Command
	took    time.Duration // how long the work ran
}

// newLoop applies the defaults and prepares the loop of one Run or Finish.
func (w *Worker) newLoop(ctx context.Context) (*loop, error) {
	backend := w.Backend
	switch {
	case (w.Service == nil) == (w.Backend == nil):
		return nil, errors.New("worker: exactly one of Service and Backend is required")
	case w.Service != nil:
		backend = local{w.Service}
	}
	if (w.Handler == nil) == (w.Command == nil) {
		return nil, errors.New("worker: exactly one of Handler and Command is required")
	}
	for name, n := range map[string]int64{"slots": int64(w.Slots), "poll": int64(w.Poll),
		"max_jobs": int64(w.MaxJobs)} {
		if n < 0 {
			return nil, &commands.InvalidError{Field: name, Got: strconv.FormatInt(n, 10),
				Allowed: "0 for the default, or more"}
		}
	}
	if w.Service != nil && w.Service.Store == nil {
		return nil, commands.ErrNoStore
	}
	if err := w.queuesOf(); err != nil {
		return nil, err
	}
	if w.Command != nil && w.Command.Carried && !slices.Contains(w.Capabilities, event.LabelArgv) {
		w.Capabilities = append(slices.Clone(w.Capabilities), event.LabelArgv)
	}
	w.nameProcess()
	w.Slots, w.Lease = max(w.Slots, 1), cmp.Or(w.Lease, commands.DefaultLease)
	w.Poll, w.StopTimeout = cmp.Or(w.Poll, defaultPoll), cmp.Or(w.StopTimeout, defaultStopTimeout)
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	l := &loop{
		Worker:  w,
		backend: backend,
		log:     w.logOf(),
		runner:  handlerRunner{w.Handler},
		active:  make(map[*task]bool),
		claimed: make(chan *task, w.Slots),
		done:    make(chan taskEnd, w.Slots),

		gone:     make(chan struct{}),
		reported: make(chan struct{}, 1),
		poller:   poller{interval: w.Poll, random: randomDuration},
	}
	if w.Command != nil {
		l.runner = w.Command
		w.Command.log, w.Command.stopping = l.log, w.stopChannel()
	}
	l.ctx, l.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	return l, nil
}

// run works until there is nothing more to do. Its goroutine is the only one that writes about the jobs of
// this worker.
func (l *loop) run(ctx context.Context) error {
	defer close(l.gone)
	defer l.abort(ErrStopping)
	stop, abort := l.stopChannel(), ctx.Done()
	changed, unsubscribe := l.backend.Watch()
	defer unsubscribe()
	ended, unsubscribeEnded := l.backend.WatchEnded()
	defer unsubscribeEnded()
	for {
		l.collectEnds()
		l.watchStuck()
		l.recordPresence()
		if l.Hooks.Alive != nil {
			l.Hooks.Alive()
		}
		select {
		case <-stop: // checked first, so that nothing more is claimed whatever else has happened
			l.stopped, stop = true, nil
		default:
		}
		if !l.abortAt.IsZero() && !time.Now().Before(l.abortAt) {
			l.abortAt = time.Time{}
			l.abort(ErrStopping)
		}
		l.stopped = l.stopped || l.fatal != nil || l.claimedAll() || l.unusable() != nil
		if l.backoff == 0 && (l.writeDue() || l.free() > 0 && l.poll()) {
			l.writeGroup()
			continue
		}
		if l.giveUp(); len(l.ends) > 0 && l.backoff == 0 {
			continue // those that were given up
		}
		if l.finished() {
			break
		}
		notified := changed
		if l.free() == 0 {
			notified = nil // what it announces is still there when a slot is free
		}
		timer := time.NewTimer(l.nextWait())
		l.backoff = 0 // whatever happens next, the ledger is tried again
		select {
		case e := <-l.done:
			l.noteEnd(e)
		case <-notified:
			l.poller.notified(time.Now())
		case <-ended:
			l.checkClaims()
		case <-timer.C:
		case <-l.reported: // the top of the loop sees it
		case <-stop: // the top of the loop sees it
		case <-abort:
			l.stopped, abort = true, nil
			if l.SoftStop >= 0 {
				l.abortAt = time.Now().Add(l.SoftStop)
			}
		}
		timer.Stop()
	}
	if err := l.unusable(); l.fatal == nil && err != nil {
		return err
	}
	return cmp.Or(l.fatal, l.damaged, l.stuckError())
}

// finished reports whether the worker has nothing left to do, and is not to wait for more.
func (l *loop) finished() bool {
	return len(l.active) == 0 && len(l.ends) == 0 && (l.stopped || l.Drain && l.poller.idle())
}

// claimedAll reports whether MaxJobs have been claimed.
func (l *loop) claimedAll() bool { return l.MaxJobs > 0 && l.stats.Claimed >= l.MaxJobs }

// unusable returns why the command cannot run, once an attempt has shown it.
func (l *loop) unusable() *StartError {
	if l.Command == nil {
		return nil
	}
	return l.Command.Unusable()
}

// collectEnds takes the ends that have arrived, so that they share the next transaction. It yields to tasks
// that are about to end: until all have ended, or four yields collected nothing.
func (l *loop) collectEnds() {
	for fruitless := 0; fruitless < 4; fruitless++ {
		for more := true; more; {
			select {
			case e := <-l.done:
				l.noteEnd(e)
				fruitless = 0
			default:
				more = false
			}
		}
		if len(l.ends) == 0 || len(l.active) == 0 {
			return
		}
		runtime.Gosched()
	}
}

// noteEnd takes in the end of a task. Its slot is free for a job that is claimed with the group that records
// the end. One that was given up has ended already.
func (l *loop) noteEnd(e taskEnd) {
	if !l.active[e.task] {
		return
	}
	delete(l.active, e.task)
	if e.task.took = e.took; e.task.stuckness.gave {
		l.given--
	}
	l.ends = append(l.ends, e)
}

// free returns how many jobs may be claimed now.
func (l *loop) free() int {
	if l.stopped || l.Command.startPause() > 0 {
		return 0
	}
	n := l.Slots - len(l.active) + l.given
	if l.MaxJobs > 0 {
		n = min(n, l.MaxJobs-l.stats.Claimed)
	}
	return n
}

// claimDue reports whether a claim whose outcome is not known is to be sent again, as there is room for it.
func (l *loop) claimDue() bool { return l.unknown != nil && len(l.unknown) <= l.free() }

// writeDue reports whether an end is to be recorded, a heartbeat to be sent, or a claim to be sent again.
func (l *loop) writeDue() bool {
	if len(l.ends) > 0 || l.claimDue() {
		return true
	}
	now := time.Now()
	for t := range l.active {
		t.postponeFirstBeat(now)
		if !now.Before(t.beatAt()) {
			return true
		}
	}
	return false
}

// checkClaims makes a heartbeat due for each task whose claim is not live any more: its refusal ends the
// task. An error is left to the next heartbeat.
func (l *loop) checkClaims() {
	held := make([]projection.Job, 0, len(l.active))
	for t := range l.active {
		held = append(held, t.current())
	}
	live, err := l.backend.Live(l.ctx, held)
	if err != nil {
		return
	}
	for t := range l.active {
		if !t.over && !t.stuckness.quiet && !live[t.current().Token] {
			t.nextBeat = time.Now()
		}
	}
}
