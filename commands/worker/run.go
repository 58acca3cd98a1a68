package worker

import (
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
)

// start begins to work on a claimed job.
func (l *loop) start(t *task) {
	l.stats.Claimed++
	l.active[t] = true
	if l.Command != nil && t.job.State == event.ClaimedState {
		t.firstBeat = time.Now().Add(firstBeatDelay)
	}
	l.debug("claimed", t, &t.job)
	if l.Hooks.Started != nil {
		l.Hooks.Started(t.job, t.job.ClaimedAt.Sub(t.job.RunAt))
	}
	t.reported, t.began = l.reported, time.Now()
	l.claimed <- t
	go l.runTasks()
}

// runTasks runs claimed tasks until there is none. One goroutine is started for each task, but a goroutine
// that has finished its task takes over another's, to avoid growing a fresh stack for a short job.
func (l *loop) runTasks() {
	for {
		select {
		case t := <-l.claimed:
			l.runTask(t)
		default:
			return
		}
	}
}

func (l *loop) runTask(t *task) {
	if l.Handler != nil {
		defer t.noteStop()()
	}
	if l.Handler != nil && !t.job.EndBy.IsZero() {
		timer := time.AfterFunc(t.job.EndBy.Sub(t.job.ClaimedAt), func() { t.cancel(ErrMaxRuntime) })
		defer timer.Stop()
	}
	began, returned := time.Now(), false
	var end commands.Command
	defer func() {
		switch {
		case returned:
		case l.Handler == nil: // a panic of this program
			return
		default: // runtime.Goexit cannot be stopped, but the job must end
			end = handlerEnd(t, nil, errExited)
		}
		select {
		case l.done <- taskEnd{t, end, time.Since(began)}:
		case <-l.gone: // it was given up
		}
	}()
	failpoint.Hit("task-begins")
	end = l.runner.run(t)
	failpoint.Hit("task-ends")
	returned = true
}
