package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// defaultStopTimeout is how long a Handler may run on after it was asked to stop.
const defaultStopTimeout = 10 * time.Second

// StuckError is the error of Run and Finish where Handlers did not return within StopTimeout after they were
// asked to stop. Their goroutines run on; what they return is recorded no more.
type StuckError struct {
	Jobs []projection.Job // as they were while the Handlers had them
}

// Error names the jobs, of many the first three.
func (e *StuckError) Error() string {
	var ids []string
	for _, j := range e.Jobs[:min(3, len(e.Jobs))] {
		ids = append(ids, string(j.ID))
	}
	more := ""
	if n := len(e.Jobs) - len(ids); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("worker: the handler of job %s%s still runs", strings.Join(ids, ", "), more)
}

// Slot is the answer of [Hooks].Stuck: whether a Handler that does not stop keeps its slot.
type Slot int

// The answers. A handler that runs on holds memory and connections, so by default it keeps its slot.
const (
	KeepSlot Slot = iota // until the Handler returns
	GiveSlot             // the worker claims another job for it
)

// stuckness is the state of a Handler that was asked to stop.
type stuckness struct {
	warned  int  // how often it was reported
	gave    bool // its slot was given to another job
	counted bool // in Stats.Stuck
	last    bool // the last heartbeat is due, or was sent
	quiet   bool // no heartbeat is sent any more
}

// noteStop notes when the context of t ends, until the function that it returns is called.
func (t *task) noteStop() (end func() bool) {
	return context.AfterFunc(t.ctx, func() {
		t.mu.Lock()
		t.stopAsked = time.Now()
		t.mu.Unlock()
		select {
		case t.reported <- struct{}{}:
		default: // the loop is about to look
		}
	})
}

// askedToStop returns when the Handler of t was asked to stop; zero: it was not.
func (t *task) askedToStop() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopAsked
}

// warnAt returns how long after a Handler was asked to stop it is reported for the nth time.
func warnAt(n int) time.Duration {
	switch n {
	case 0:
		return time.Second
	case 1:
		return 10 * time.Second
	}
	return time.Duration(n-1) * time.Minute
}

// overdue reports whether t was to have stopped StopTimeout ago.
func (l *loop) overdue(t *task, now time.Time) bool {
	asked := t.askedToStop()
	return l.StopTimeout > 0 && !asked.IsZero() && !now.Before(asked.Add(l.StopTimeout))
}

// stuckWait returns how long to wait until something is to be done about Handlers that do not stop.
func (l *loop) stuckWait(now time.Time, wait time.Duration) time.Duration {
	for t := range l.active {
		asked := t.askedToStop()
		if asked.IsZero() {
			continue
		}
		wait = min(wait, asked.Add(warnAt(t.stuckness.warned)).Sub(now))
		if l.StopTimeout > 0 && !t.stuckness.last {
			wait = min(wait, asked.Add(l.StopTimeout).Sub(now))
		}
	}
	return wait
}

// watchStuck reports the Handlers that do not stop, and ends the heartbeats of those that should have stopped
// by now.
func (l *loop) watchStuck() {
	now, running := time.Now(), 0
	var late []*task
	for t := range l.active {
		asked := t.askedToStop()
		if asked.IsZero() {
			continue
		}
		if !now.Before(asked.Add(warnAt(t.stuckness.warned))) {
			late = append(late, t)
		}
		if t.stuckness.warned > 0 || !now.Before(asked.Add(warnAt(0))) {
			running++
		}
		if l.overdue(t, now) && !t.stuckness.last {
			l.endHeartbeats(t, now.Sub(asked))
		}
	}
	if len(late) == 0 {
		return
	}
	var found map[string]string
	for _, t := range late {
		if t.stuckness.warned == 0 && found == nil {
			found = stacks()
		}
		l.reportStuck(t, now.Sub(t.askedToStop()), running, found[string(t.job.ID)])
	}
}

// reportStuck logs that the Handler of t still runs, the first time with its stack, and asks the hook.
func (l *loop) reportStuck(t *task, since time.Duration, running int, stack string) {
	job, cause := t.current(), context.Cause(t.ctx)
	attributes := t.logged(job, "cause", cause, "asked_to_stop", since.Round(time.Millisecond))
	if t.stuckness.warned == 0 {
		attributes = append(attributes, "stack", stack)
	}
	for !time.Now().Before(t.askedToStop().Add(warnAt(t.stuckness.warned))) {
		t.stuckness.warned++
	}
	l.log.Warn("handler still runs", attributes...)
	if l.Hooks.Stuck == nil || l.Hooks.Stuck(job, cause, since, running) != GiveSlot || t.stuckness.gave {
		return
	}
	t.stuckness.gave = true
	l.given++
	l.countStuck(t)
}

func (l *loop) countStuck(t *task) {
	if !t.stuckness.counted {
		t.stuckness.counted = true
		l.stats.Stuck++
	}
}

// endHeartbeats sends no heartbeats for t any more: its claim is not kept alive for a Handler that does not
// stop. The last one says so. A worker that stops releases the job instead.
func (l *loop) endHeartbeats(t *task, since time.Duration) {
	l.countStuck(t)
	cause := context.Cause(t.ctx)
	t.stuckness.last = true
	if t.over || errors.Is(cause, ErrStopping) {
		t.stuckness.quiet = true
		return
	}
	t.stuckNote = commands.Detail(fmt.Sprintf("the handler still runs %s after it was asked to stop: %s",
		since.Round(time.Second), cause))
	t.nextBeat = time.Now()
}

// giveUp ends the wait for Handlers that do not stop, once there is nothing else to wait for.
func (l *loop) giveUp() {
	now := time.Now()
	full := l.Drain && l.free() == 0
	if len(l.active) == 0 || !l.stopped && !full && !(l.Drain && l.poller.idle()) {
		return
	}
	for t := range l.active {
		if !l.overdue(t, now) {
			return
		}
	}
	for t := range l.active {
		l.stuck = append(l.stuck, t.current())
		l.noteEnd(taskEnd{t, l.endOfStuck(t), now.Sub(t.began)})
	}
	l.stopped = true
}

// endOfStuck releases the job of a worker that stops, for when its lease would have ended: its Handler may
// still work on it. nil: the claim is lost, or ends with its lease.
func (l *loop) endOfStuck(t *task) commands.Command {
	if t.over || !errors.Is(context.Cause(t.ctx), ErrStopping) {
		return nil
	}
	job := t.current()
	rest := max(job.LeaseUntil.Sub(l.ledgerNow()), time.Until(t.deadlines().Kill), 0)
	return commands.Release{Token: job.Token, Delay: min(rest, l.Lease),
		Reason: "the worker is stopping, and its handler still runs"}
}

// stuckError returns the StuckError of Run, if there is one.
func (l *loop) stuckError() error {
	if len(l.stuck) == 0 {
		return nil
	}
	return &StuckError{l.stuck}
}

// labelled returns ctx with the label of the goroutine that works on job, which it has from now on.
func labelled(ctx context.Context, job projection.Job) context.Context {
	ctx = pprof.WithLabels(ctx, pprof.Labels("job", string(job.ID)))
	pprof.SetGoroutineLabels(ctx)
	return ctx
}

// maxStack is how much of a stack is logged.
const maxStack = 4 << 10

// stacks returns the stacks of the goroutines that have a label of a job, by job: that of its Handler and of
// those that it has started.
func stacks() map[string]string {
	var profile bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&profile, 1) != nil {
		return nil
	}
	all := make(map[string]string)
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		_, labelled, _ := strings.Cut(block, "\n# labels: ")
		text, frames, _ := strings.Cut(labelled, "\n")
		var labels struct{ Job string }
		if json.Unmarshal([]byte(text), &labels) != nil || labels.Job == "" {
			continue
		}
		var stack strings.Builder
		for frame := range strings.Lines(frames) { // "#\t0x47\tpackage.function+0x1\tfile:line"
			if parts := strings.Split(frame, "\t"); len(parts) > 2 {
				stack.WriteString(strings.Join(parts[2:], " "))
			}
		}
		s := strings.TrimSpace(all[labels.Job] + "\n\n" + stack.String())
		all[labels.Job] = s[:min(len(s), maxStack)]
	}
	return all
}
