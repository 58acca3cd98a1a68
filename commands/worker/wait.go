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
func (s *shift) look() bool {
	now := time.Now()
	if s.empty && now.Before(s.lookAt) {
		return false
	}
	s.empty = false
	if s.woken {
		return true
	}
	ready, due, err := s.Service.Ready(s.ctx, s.request(1))
	if err != nil {
		s.failed(toLook, err)
		return false
	}
	s.answered(toLook)
	if s.lured = ready; ready {
		return true
	}
	wait := s.Poll + rand.N(s.Poll/4+1) // #nosec G404 -- no secret: so that many idle workers do not look in step
	if !due.IsZero() {
		wait = min(wait, due.Sub(s.ledgerNow())+s.jitter())
	}
	s.rest(wait)
	return false
}

// ledgerNow is the time by the clock that says when a job is due.
func (s *shift) ledgerNow() time.Time {
	if s.Service.Store.Now != nil {
		return s.Service.Store.Now()
	}
	return time.Now()
}

// rest takes it that there is nothing until d has passed, unless something wakes.
func (s *shift) rest(d time.Duration) { s.empty, s.lookAt = true, time.Now().Add(d) }

// wake looks at once; but a worker that others were quicker than of late leaves them a moment, so that the many that
// one job wakes do not all ask for the write lock.
func (s *shift) wake() {
	if s.outrun == 0 {
		s.empty, s.woken = false, !s.wary
		return
	}
	if at := time.Now().Add(s.jitter()); !s.empty || at.Before(s.lookAt) {
		s.empty, s.lookAt = true, at
	}
}

func (s *shift) jitter() time.Duration {
	return rand.N(time.Duration(s.outrun+1) * time.Millisecond) // #nosec G404 -- no secret
}

// looked takes in what came of a claim of up to free jobs.
func (s *shift) looked(claimed, free int) {
	lured, woken := s.lured, s.woken
	s.lured, s.woken = false, false
	switch {
	case free == 0:
	case claimed > 0: // there may be more; and when the next one is due is not known
		s.empty, s.wary, s.outrun = false, false, max(0, s.outrun-1)
	case woken:
		s.empty, s.wary = false, true
	case lured:
		s.outrun = min(s.outrun+1, maxOutrun)
		s.rest(s.jitter())
	default:
		s.empty = false
	}
}

// pause is how long to wait if nothing happens: to the next beat, the next look, the next try, or until it is time to
// say again that this process is there.
func (s *shift) pause() time.Duration {
	wait := time.Until(s.present.Add(commands.PresentEvery))
	switch {
	case s.trouble > 0:
		wait = min(wait, s.trouble)
		s.trouble = 0
	case s.free() > 0:
		wait = min(wait, time.Until(s.lookAt))
	}
	if hold := s.Command.holdOff(); hold > 0 {
		wait = min(wait, hold)
	}
	for t := range s.active {
		wait = min(wait, time.Until(t.beat))
	}
	return max(wait, 0)
}

// sayPresent notes now and then that this process is there.
func (s *shift) sayPresent() {
	if time.Since(s.present) < commands.PresentEvery || s.fatal != nil || s.silent {
		return
	}
	s.present = time.Now()
	if err := s.Service.Present(context.WithoutCancel(s.ctx), s.Process); err != nil {
		s.failed(toAppear, err)
		return
	}
	s.answered(toAppear)
}
