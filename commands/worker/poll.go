package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"jobledger/commands"
)

// Waiting for work. An idle worker reads, so that it does not take the write lock to find that there is nothing. It looks
// when the next job that fits is due, and now and then because nothing is certain. When it is woken it claims at once,
// unless that was in vain of late. While all of its slots are busy it does not look at all: what is announced meanwhile
// is still there when a slot is free.

// defaultPoll is how often it looks for no reason.
const defaultPoll = 5 * time.Second

// maxOutrun bounds how far workers that compete for the same jobs give way to each other.
const maxOutrun = 8

// look reports whether to claim. Unless it was woken it finds out by reading whether there is work, and if not, when to
// look again.
func (l *loop) look() bool {
	now := time.Now()
	if l.empty && now.Before(l.lookAt) {
		return false
	}
	l.empty = false
	if l.woken {
		return true
	}
	ready, due, err := l.Service.Ready(l.ctx, l.request(1))
	if err != nil {
		l.failed(toLook, err)
		return false
	}
	l.answered(toLook)
	if l.lured = ready; ready {
		return true
	}
	wait := l.Poll + rand.N(l.Poll/4+1) // #nosec G404 -- no secret: so that many idle workers do not look in step
	if !due.IsZero() {
		wait = min(wait, due.Sub(l.ledgerNow())+l.jitter())
	}
	l.rest(wait)
	return false
}

// ledgerNow is the time by the clock that says when a job is due.
func (l *loop) ledgerNow() time.Time {
	if l.Service.Store.Now != nil {
		return l.Service.Store.Now()
	}
	return time.Now()
}

// rest takes it that there is nothing until d has passed, unless something wakes.
func (l *loop) rest(d time.Duration) { l.empty, l.lookAt = true, time.Now().Add(d) }

// wake looks at once; but a worker that others were quicker than of late leaves them a moment, so that the many that
// one job wakes do not all ask for the write lock.
func (l *loop) wake() {
	if l.outrun == 0 {
		l.empty, l.woken = false, !l.wary
		return
	}
	if at := time.Now().Add(l.jitter()); !l.empty || at.Before(l.lookAt) {
		l.empty, l.lookAt = true, at
	}
}

func (l *loop) jitter() time.Duration {
	return rand.N(time.Duration(l.outrun+1) * time.Millisecond) // #nosec G404 -- no secret
}

// looked takes in what came of a claim of up to free jobs.
func (l *loop) looked(claimed, free int) {
	lured, woken := l.lured, l.woken
	l.lured, l.woken = false, false
	switch {
	case free == 0:
	case claimed > 0: // there may be more; and when the next one is due is not known
		l.empty, l.wary, l.outrun = false, false, max(0, l.outrun-1)
	case woken:
		l.empty, l.wary = false, true
	case lured:
		l.outrun = min(l.outrun+1, maxOutrun)
		l.rest(l.jitter())
	default:
		l.empty = false
	}
}

// pause is how long to wait if nothing happens: to the next beat, the next look, the next try, or until it is time to
// say again that this process is there.
func (l *loop) pause() time.Duration {
	wait := time.Until(l.present.Add(commands.PresentEvery))
	switch {
	case l.trouble > 0:
		wait = min(wait, l.trouble)
		l.trouble = 0
	case l.free() > 0:
		wait = min(wait, time.Until(l.lookAt))
	}
	if hold := l.Command.holdOff(); hold > 0 {
		wait = min(wait, hold)
	}
	for t := range l.active {
		wait = min(wait, time.Until(t.beat))
	}
	return max(wait, 0)
}

// sayPresent notes now and then that this process is there.
func (l *loop) sayPresent() {
	if time.Since(l.present) < commands.PresentEvery || l.fatal != nil || l.silent {
		return
	}
	l.present = time.Now()
	if err := l.Service.Present(context.WithoutCancel(l.ctx), l.Process); err != nil {
		l.failed(toAppear, err)
		return
	}
	l.answered(toAppear)
}
