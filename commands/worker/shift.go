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

// shift is a Worker at work. All of it belongs to the goroutine of loop, but for done.
type shift struct {
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

func (w *Worker) prepare(ctx context.Context) (*shift, error) {
	if (w.Handler == nil) == (w.Command == nil) {
		return nil, errors.New("worker: give it either a Handler or a Command")
	}
	w.Slots, w.Lease = max(w.Slots, 1), cmp.Or(w.Lease, commands.DefaultLease)
	w.Poll = cmp.Or(w.Poll, defaultPoll)
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	s := &shift{Worker: w, active: make(map[*task]bool), begun: make(chan *task, w.Slots), done: make(chan finish, w.Slots)}
	s.what = handled{w.Handler}
	if w.Command != nil {
		s.what = w.Command
		w.Command.log, w.Command.stopping = w.Log, w.stopChannel()
	}
	s.ctx, s.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// loop is the one goroutine that writes: ends, beats and claims share its transactions.
func (s *shift) loop(ctx context.Context) error {
	defer s.abort(ErrStopping)
	stop, abort := s.stopChannel(), ctx.Done()
	woken, deafen := s.Service.Store.Watch()
	defer deafen()
	for {
		s.collect()
		s.sayPresent()
		select {
		case <-stop: // so nothing more is claimed, whatever else has come
			s.stopped, stop = true, nil
		default:
		}
		s.stopped = s.stopped || s.fatal != nil || s.MaxJobs > 0 && s.stats.Claimed >= s.MaxJobs || s.unusable() != nil
		if s.needsTurn() {
			s.turn()
			continue
		}
		if len(s.active) == 0 && len(s.endings) == 0 && (s.stopped || s.Drain && s.empty) {
			break
		}
		timer, bell := time.NewTimer(s.pause()), woken
		if s.free() == 0 {
			bell = nil
		}
		select {
		case f := <-s.done:
			s.end(f)
		case <-bell:
			s.wake()
		case <-timer.C:
		case <-stop:
		case <-abort:
			s.stopped, abort = true, nil
			s.abort(ErrStopping)
		}
		timer.Stop()
	}
	if err := s.unusable(); s.fatal == nil && err != nil {
		return err
	}
	return cmp.Or(s.fatal, s.damaged)
}

// unusable is why the command cannot run, if that is so.
func (s *shift) unusable() *StartError {
	if s.Command == nil {
		return nil
	}
	return s.Command.Unusable()
}

// collect takes the ends that are there already, so that they share the next transaction. It gives way to jobs that
// are just about to end: until all have, or giving way a few times has brought nothing.
func (s *shift) collect() {
	for fruitless := 0; fruitless < 4; fruitless++ {
		for more := true; more; {
			select {
			case f := <-s.done:
				s.end(f)
				fruitless = 0
			default:
				more = false
			}
		}
		if len(s.endings) == 0 || len(s.active) == 0 {
			return
		}
		runtime.Gosched()
	}
}

// end takes the end of a task, which is not at work any more. Its slot is free for whoever is claimed when the end is
// recorded.
func (s *shift) end(f finish) {
	delete(s.active, f.task)
	s.endings = append(s.endings, f)
}

// free is how many jobs may be claimed now.
func (s *shift) free() int {
	if s.stopped || s.Command.holdOff() > 0 {
		return 0
	}
	n := s.Slots - len(s.active)
	if s.MaxJobs > 0 {
		n = min(n, s.MaxJobs-s.stats.Claimed)
	}
	return n
}

// needsTurn reports whether there is something to write. Whether there is work is found out by reading.
func (s *shift) needsTurn() bool {
	if s.trouble > 0 {
		return false
	}
	if len(s.endings) > 0 {
		return true
	}
	now := time.Now()
	for t := range s.active {
		if !now.Before(t.beat) {
			return true
		}
	}
	return s.free() > 0 && s.look()
}

func (s *shift) request(limit int) commands.ClaimRequest {
	return commands.ClaimRequest{Queues: s.Queues, Version: s.Process.Version, Capabilities: s.Capabilities, Worker: s.Process,
		Lease: s.Lease, MaxRuntime: s.MaxRuntime, Limit: limit}
}

// turn records what has ended, beats for what goes on, and claims what there is room for, in one transaction.
func (s *shift) turn() {
	steps, tasks := make([]commands.Step, 0, len(s.endings)), make([]*task, 0, len(s.endings))
	for _, e := range s.endings {
		if e.command != nil && s.fatal == nil {
			steps, tasks = append(steps, commands.Step{Job: e.task.current(), Command: e.command}), append(tasks, e.task)
		}
	}
	ends := len(steps)
	asked := time.Now()
	for t := range s.active {
		if s.fatal == nil && !asked.Add(s.Lease/12).Before(t.beat) { // those almost due come along
			j := t.current()
			steps, tasks = append(steps, commands.Step{Job: j, Command: commands.Heartbeat{Token: j.Token, Lease: s.Lease}}), append(tasks, t)
		}
	}
	free := min(s.free(), commands.MaxClaim)
	failpoint.Hit("turn-begins")
	outcomes, claimed, err := s.write(steps, free)
	failpoint.Hit("turn-ends")
	if err != nil {
		s.failed(toWrite, err)
		return
	}
	if len(steps) > 0 || free > 0 {
		s.answered(toWrite)
	}
	for _, e := range s.endings {
		if e.command == nil || s.fatal != nil {
			s.why = context.Cause(e.task.ctx)
			s.Log.Warn("lost", "job", e.task.current().ID, "cause", s.why)
			s.ended(e.task, e.task.current(), Lost)
		}
		e.task.over()
	}
	s.endings = s.endings[:0]
	for i, o := range outcomes {
		if i < ends {
			s.recorded(tasks[i], steps[i].Command, o)
		} else {
			s.beaten(tasks[i], o, asked)
		}
	}
	for _, j := range claimed {
		s.start(newTask(s.ctx, j, asked, s.Lease))
	}
	s.looked(len(claimed), free)
}

// write uses the narrowest call: nothing to claim needs no request.
func (s *shift) write(steps []commands.Step, free int) ([]commands.Outcome, []projection.Job, error) {
	ctx := context.WithoutCancel(s.ctx)
	if free > 0 {
		return s.Service.Turn(ctx, "worker:"+s.Process.Name, steps, s.request(free))
	}
	if len(steps) == 0 {
		return nil, nil, nil
	}
	outcomes, err := s.Service.All(ctx, "worker:"+s.Process.Name, steps)
	return outcomes, nil, err
}

func (s *shift) start(t *task) {
	s.stats.Claimed++
	s.active[t] = true
	s.Log.Debug("claimed", "job", t.job.ID, "attempt", t.job.Attempt)
	if s.Hooks.Started != nil {
		s.Hooks.Started(t.job, t.job.ClaimedAt.Sub(t.job.RunAt))
	}
	s.begun <- t
	go s.hand()
}

// hand works on what has begun. There is one for each task, but one that is done takes the task of another: its stack has
// grown already, which of a short job is no small part.
func (s *shift) hand() {
	for {
		select {
		case t := <-s.begun:
			s.work(t)
		default:
			return
		}
	}
}

func (s *shift) work(t *task) {
	if s.Handler != nil && !t.job.EndBy.IsZero() {
		timer := time.AfterFunc(t.job.EndBy.Sub(t.job.ClaimedAt), func() { t.cancel(ErrMaxRuntime) })
		defer timer.Stop()
	}
	began, returned := time.Now(), false
	var end commands.Command
	defer func() {
		switch {
		case returned:
		case s.Handler == nil: // this program panics
			return
		default: // nobody can keep that goroutine, but its job must not be held for ever
			end = ending(t, nil, errExited)
		}
		t.took = time.Since(began)
		s.done <- finish{t, end}
	}()
	failpoint.Hit("task-begins")
	end = s.what.run(t)
	failpoint.Hit("task-ends")
	returned = true
}

// recorded takes what the ledger answered to an end.
func (s *shift) recorded(t *task, c commands.Command, o commands.Outcome) {
	before := t.current()
	switch r, _ := c.(commands.Release); {
	case o.Err != nil:
		s.why = o.Err
		s.Log.Warn("end refused", "job", before.ID, "error", o.Err)
		s.ended(t, before, Lost)
	case o.Job.State == ledger.SucceededState:
		s.Log.Debug("succeeded", "job", before.ID)
		s.ended(t, o.Job, Succeeded)
	case o.Job.Failures > before.Failures: // a job that was put off too often fails too
		s.Log.Warn("failed", "job", before.ID, "attempt", o.Job.Attempt, "code", o.Job.ErrorCode, "state", o.Job.State, "retry_at", o.Job.RunAt)
		s.ended(t, o.Job, Failed)
	default:
		s.Log.Info("released", "job", before.ID, "reason", r.Reason)
		s.ended(t, o.Job, Released)
	}
}

// beaten takes the answer to a heartbeat. A refused one means that the claim is over: stop at once.
func (s *shift) beaten(t *task, o commands.Outcome, asked time.Time) {
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
func (s *shift) failed(what string, err error) {
	if _, ok := errors.AsType[*projection.DamagedJobError](err); ok {
		s.onlyDamaged(what, err)
		return
	}
	if s.setback.note(what, err) {
		s.Log.Error(what, "error", err)
	}
	if s.overdue() || errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrDamaged) {
		s.fatal = err
		for t := range s.active {
			t.cancel(fmt.Errorf("%w: %w", commands.ErrLeaseLost, err))
		}
		return
	}
	s.trouble = s.setback.patience(s.Lease)
}

// overdue reports whether this worker was told to end at once, and has tried for long enough to record what is left.
func (s *shift) overdue() bool {
	if len(s.active) > 0 || !errors.Is(context.Cause(s.ctx), ErrStopping) {
		return false
	}
	if s.giveUp.IsZero() {
		s.giveUp = time.Now().Add(lastWrites)
	}
	return time.Now().After(s.giveUp)
}

// onlyDamaged notes that there is nothing to claim but damaged jobs. That must not end a worker that others need.
func (s *shift) onlyDamaged(what string, err error) {
	if s.worst.note(what, err) {
		s.Log.Error(what, "error", err)
	}
	s.rest(s.Poll)
	if s.Drain {
		s.stopped, s.damaged = true, err
	}
}

// answered notes that the ledger does what it failed to do.
func (s *shift) answered(what string) {
	if b := s.setback; b.over(what) {
		s.setback = setback{}
		s.Log.Info("the ledger answers again", "after", time.Since(b.since).Round(time.Millisecond))
	}
}
