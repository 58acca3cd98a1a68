package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"jobledger/commands"
)

// defaultPoll is how often an idle worker reads although it was not notified.
const defaultPoll = 5 * time.Second

// randomDuration returns a duration from [0, limit).
func randomDuration(limit time.Duration) time.Duration {
	return rand.N(limit) // #nosec G404 -- no secret: it spreads workers out in time
}

// poll reports whether to claim now. If the poller says so, it first reads whether a job is ready.
func (l *loop) poll() bool {
	switch l.poller.next(time.Now()) {
	case pollRest:
		return false
	case pollClaim:
		return true
	}
	ready, due, err := l.backend.Ready(l.ctx, l.request(1))
	switch {
	case err != nil:
		l.poller.readFailed()
		l.failed(askPoll, err)
		return false
	case ready:
		l.poller.sawReady()
	case due.IsZero():
		l.poller.sawNothing(time.Now())
	default:
		l.poller.sawDue(time.Now(), due.Sub(l.ledgerNow()))
	}
	l.answered(askPoll)
	return ready
}

// ledgerNow returns the time by the clock that decides when a job is due.
func (l *loop) ledgerNow() time.Time {
	if l.Service != nil && l.Service.Store.Now != nil {
		return l.Service.Store.Now()
	}
	return time.Now()
}

// nextWait returns how long to wait for an event: until the next heartbeat, read, retry, or record of
// presence.
func (l *loop) nextWait() time.Duration {
	now := time.Now()
	wait := commands.PresentEvery
	if l.announces() {
		wait = l.presentAt.Add(wait).Sub(now)
	}
	switch {
	case l.backoff > 0:
		wait = min(wait, l.backoff)
	case l.free() > 0:
		wait = min(wait, l.poller.wait(now))
	}
	if pause := l.Command.startPause(); pause > 0 {
		wait = min(wait, pause)
	}
	for t := range l.active {
		wait = min(wait, t.beatAt().Sub(now))
	}
	if !l.abortAt.IsZero() {
		wait = min(wait, l.abortAt.Sub(now))
	}
	wait = l.stuckWait(now, wait)
	return max(wait, 0)
}

// announces reports whether the presence of this process is recorded, now and then.
func (l *loop) announces() bool { return l.fatal == nil && !l.unannounced }

// recordPresence records once in commands.PresentEvery that this process is still there.
func (l *loop) recordPresence() {
	if !l.announces() || time.Since(l.presentAt) < commands.PresentEvery {
		return
	}
	l.presentAt = time.Now()
	if err := l.backend.Present(context.WithoutCancel(l.ctx), l.Process); err != nil {
		l.failed(askPresence, err)
		return
	}
	l.answered(askPresence)
}
