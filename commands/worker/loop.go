package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// loop is a Worker at work. All of it belongs to the goroutine of run, except for done.
type loop struct {
	*Worker
	ctx   context.Context // of the jobs: ends with ErrStopping
	abort context.CancelCauseFunc
	what  runner

	active  map[*task]bool // at work now
	begun   chan *task     // has room for all slots, and so has
	done    chan finish
	endings []finish      // to be recorded
	empty   bool          // there was nothing ready, and there is no reason to look before
	lookAt  time.Time     // this
	woken   bool          // it is worth a claim without a look
	wary    bool          // the last such claim was in vain
	lured   bool          // the last look saw something ready
	outrun  int           // how often others have claimed it before this worker, of late
	present time.Time     // when it said last that this process is there
	silent  bool          // never say so
	stopped bool          // claim no more
	trouble time.Duration // how long to leave the ledger alone after an error
	setback setback       // the errors since it answered last
	worst   setback       // of damaged jobs, for the log
	giveUp  time.Time     // when to end although something is not recorded
	stats   Stats
	why     error // the last claim was lost
	damaged error // there is nothing to claim but a damaged job, and nothing to wait for
	fatal   error // the ledger is gone
}

// finish is a task that has come to its end, with the command that says how; nil: nothing to record.
type finish struct {
	task    *task
	command commands.Command
}

func (w *Worker) prepare(ctx context.Context) (*loop, error) {
	if (w.Handler == nil) == (w.Command == nil) {
		return nil, errors.New("worker: give it either a Handler or a Command")
	}
	w.Slots, w.Lease = max(w.Slots, 1), cmp.Or(w.Lease, commands.DefaultLease)
	w.Poll = cmp.Or(w.Poll, defaultPoll)
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	l := &loop{Worker: w, active: make(map[*task]bool), begun: make(chan *task, w.Slots), done: make(chan finish, w.Slots)}
	l.what = handled{w.Handler}
	if w.Command != nil {
		l.what = w.Command
		w.Command.log, w.Command.stopping = w.Log, w.stopChannel()
	}
	l.ctx, l.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	return l, nil
}

// run is the one goroutine that writes: ends, beats and claims share its transactions.
func (l *loop) run(ctx context.Context) error {
	defer l.abort(ErrStopping)
	stop, abort := l.stopChannel(), ctx.Done()
	woken, deafen := l.Service.Store.Watch()
	defer deafen()
	for {
		l.collect()
		l.sayPresent()
		select {
		case <-stop: // so nothing more is claimed, whatever else has come
			l.stopped, stop = true, nil
		default:
		}
		l.stopped = l.stopped || l.fatal != nil || l.MaxJobs > 0 && l.stats.Claimed >= l.MaxJobs || l.unusable() != nil
		if l.needsTurn() {
			l.turn()
			continue
		}
		if len(l.active) == 0 && len(l.endings) == 0 && (l.stopped || l.Drain && l.empty) {
			break
		}
		timer, bell := time.NewTimer(l.pause()), woken
		if l.free() == 0 {
			bell = nil
		}
		select {
		case f := <-l.done:
			l.end(f)
		case <-bell:
			l.wake()
		case <-timer.C:
		case <-stop:
		case <-abort:
			l.stopped, abort = true, nil
			l.abort(ErrStopping)
		}
		timer.Stop()
	}
	if err := l.unusable(); l.fatal == nil && err != nil {
		return err
	}
	return cmp.Or(l.fatal, l.damaged)
}

// unusable is why the command cannot run, if that is so.
func (l *loop) unusable() *StartError {
	if l.Command == nil {
		return nil
	}
	return l.Command.Unusable()
}

// collect takes the ends that are there already, so that they share the next transaction. It gives way to jobs that
// are just about to end: until all have, or giving way a few times has brought nothing.
func (l *loop) collect() {
	for fruitless := 0; fruitless < 4; fruitless++ {
		for more := true; more; {
			select {
			case f := <-l.done:
				l.end(f)
				fruitless = 0
			default:
				more = false
			}
		}
		if len(l.endings) == 0 || len(l.active) == 0 {
			return
		}
		runtime.Gosched()
	}
}

// end takes the end of a task, which is not at work any more. Its slot is free for whoever is claimed when the end is
// recorded.
func (l *loop) end(f finish) {
	delete(l.active, f.task)
	l.endings = append(l.endings, f)
}

// free is how many jobs may be claimed now.
func (l *loop) free() int {
	if l.stopped || l.Command.holdOff() > 0 {
		return 0
	}
	n := l.Slots - len(l.active)
	if l.MaxJobs > 0 {
		n = min(n, l.MaxJobs-l.stats.Claimed)
	}
	return n
}

// needsTurn reports whether there is something to write. Whether there is work is found out by reading.
func (l *loop) needsTurn() bool {
	if l.trouble > 0 {
		return false
	}
	if len(l.endings) > 0 {
		return true
	}
	now := time.Now()
	for t := range l.active {
		if !now.Before(t.beat) {
			return true
		}
	}
	return l.free() > 0 && l.look()
}

func (l *loop) request(limit int) commands.ClaimRequest {
	return commands.ClaimRequest{Queues: l.Queues, Version: l.Process.Version, Capabilities: l.Capabilities, Worker: l.Process,
		Lease: l.Lease, MaxRuntime: l.MaxRuntime, Limit: limit}
}

// turn records what has ended, beats for what goes on, and claims what there is room for, in one transaction.
func (l *loop) turn() {
	steps, tasks := make([]commands.Op, 0, len(l.endings)), make([]*task, 0, len(l.endings))
	for _, e := range l.endings {
		if e.command != nil && l.fatal == nil {
			steps, tasks = append(steps, commands.Op{Job: e.task.current(), Command: e.command}), append(tasks, e.task)
		}
	}
	ends := len(steps)
	asked := time.Now()
	for t := range l.active {
		if l.fatal == nil && !asked.Add(l.Lease/12).Before(t.beat) { // those almost due come along
			j := t.current()
			steps, tasks = append(steps, commands.Op{Job: j, Command: commands.Heartbeat{Token: j.Token, Lease: l.Lease}}), append(tasks, t)
		}
	}
	free := min(l.free(), commands.MaxClaim)
	failpoint.Hit("turn-begins")
	outcomes, claimed, err := l.write(steps, free)
	failpoint.Hit("turn-ends")
	if err != nil {
		l.failed(toWrite, err)
		return
	}
	if len(steps) > 0 || free > 0 {
		l.answered(toWrite)
	}
	for _, e := range l.endings {
		if e.command == nil || l.fatal != nil {
			l.why = context.Cause(e.task.ctx)
			l.Log.Warn("lost", "job", e.task.current().ID, "cause", l.why)
			l.ended(e.task, e.task.current(), Lost)
		}
		e.task.over()
	}
	l.endings = l.endings[:0]
	for i, o := range outcomes {
		if i < ends {
			l.recorded(tasks[i], steps[i].Command, o)
		} else {
			l.beaten(tasks[i], o, asked)
		}
	}
	for _, j := range claimed {
		l.start(newTask(l.ctx, j, asked, l.Lease))
	}
	l.looked(len(claimed), free)
}

// write uses the narrowest call: nothing to claim needs no request.
func (l *loop) write(steps []commands.Op, free int) ([]commands.Result, []projection.Job, error) {
	ctx := context.WithoutCancel(l.ctx)
	if free > 0 {
		return l.Service.ApplyAndClaim(ctx, "worker:"+l.Process.Name, steps, l.request(free))
	}
	if len(steps) == 0 {
		return nil, nil, nil
	}
	outcomes, err := l.Service.ApplyBatch(ctx, "worker:"+l.Process.Name, steps)
	return outcomes, nil, err
}

func (l *loop) start(t *task) {
	l.stats.Claimed++
	l.active[t] = true
	l.Log.Debug("claimed", "job", t.job.ID, "attempt", t.job.Attempt)
	if l.Hooks.Started != nil {
		l.Hooks.Started(t.job, t.job.ClaimedAt.Sub(t.job.RunAt))
	}
	l.begun <- t
	go l.hand()
}

// hand works on what has begun. There is one for each task, but one that is done takes the task of another: its stack has
// grown already, which of a short job is no small part.
func (l *loop) hand() {
	for {
		select {
		case t := <-l.begun:
			l.work(t)
		default:
			return
		}
	}
}

func (l *loop) work(t *task) {
	if l.Handler != nil && !t.job.EndBy.IsZero() {
		timer := time.AfterFunc(t.job.EndBy.Sub(t.job.ClaimedAt), func() { t.cancel(ErrMaxRuntime) })
		defer timer.Stop()
	}
	began, returned := time.Now(), false
	var end commands.Command
	defer func() {
		switch {
		case returned:
		case l.Handler == nil: // this program panics
			return
		default: // nobody can keep that goroutine, but its job must not be held for ever
			end = ending(t, nil, errExited)
		}
		t.took = time.Since(began)
		l.done <- finish{t, end}
	}()
	failpoint.Hit("task-begins")
	end = l.what.run(t)
	failpoint.Hit("task-ends")
	returned = true
}

// recorded takes what the ledger answered to an end.
func (l *loop) recorded(t *task, c commands.Command, o commands.Result) {
	before := t.current()
	switch r, _ := c.(commands.Release); {
	case o.Err != nil:
		l.why = o.Err
		l.Log.Warn("end refused", "job", before.ID, "error", o.Err)
		l.ended(t, before, Lost)
	case o.Job.State == ledger.SucceededState:
		l.Log.Debug("succeeded", "job", before.ID)
		l.ended(t, o.Job, Succeeded)
	case o.Job.Failures > before.Failures: // a job that was put off too often fails too
		l.Log.Warn("failed", "job", before.ID, "attempt", o.Job.Attempt, "code", o.Job.ErrorCode, "state", o.Job.State, "retry_at", o.Job.RunAt)
		l.ended(t, o.Job, Failed)
	default:
		l.Log.Info("released", "job", before.ID, "reason", r.Reason)
		l.ended(t, o.Job, Released)
	}
}

// beaten takes the answer to a heartbeat. A refused one means that the claim is over: stop at once.
func (l *loop) beaten(t *task, o commands.Result, asked time.Time) {
	switch {
	case o.Err == nil:
		t.renewed(o.Job, asked)
	case errors.Is(o.Err, commands.ErrCancelled):
		t.cancel(commands.ErrCancelled)
		t.beat = asked.Add(commands.MaxLease)
	default:
		t.cancel(fmt.Errorf("%w: %w", commands.ErrLeaseLost, o.Err))
		t.beat = asked.Add(commands.MaxLease)
	}
}

// failed notes trouble with the ledger and waits longer each time. When the ledger is gone, everything stops.
func (l *loop) failed(what string, err error) {
	if _, ok := errors.AsType[*projection.DamagedJobError](err); ok {
		l.onlyDamaged(what, err)
		return
	}
	if l.setback.note(what, err) {
		l.Log.Error(what, "error", err)
	}
	if l.overdue() || errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrDamaged) {
		l.fatal = err
		for t := range l.active {
			t.cancel(fmt.Errorf("%w: %w", commands.ErrLeaseLost, err))
		}
		return
	}
	l.trouble = l.setback.patience(l.Lease)
}

// overdue reports whether this worker was told to end at once, and has tried for long enough to record what is left.
func (l *loop) overdue() bool {
	if len(l.active) > 0 || !errors.Is(context.Cause(l.ctx), ErrStopping) {
		return false
	}
	if l.giveUp.IsZero() {
		l.giveUp = time.Now().Add(lastWrites)
	}
	return time.Now().After(l.giveUp)
}

// onlyDamaged notes that there is nothing to claim but damaged jobs. That must not end a worker that others need.
func (l *loop) onlyDamaged(what string, err error) {
	if l.worst.note(what, err) {
		l.Log.Error(what, "error", err)
	}
	l.rest(l.Poll)
	if l.Drain {
		l.stopped, l.damaged = true, err
	}
}

// answered notes that the ledger does what it failed to do.
func (l *loop) answered(what string) {
	if b := l.setback; b.over(what) {
		l.setback = setback{}
		l.Log.Info("the ledger answers again", "after", time.Since(b.since).Round(time.Millisecond))
	}
}
