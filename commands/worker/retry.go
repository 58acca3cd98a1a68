package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/claims"
)

// The names, in a worker's log, of its calls to the ledger.
const (
	askWrite    = "write"
	askPoll     = "poll for work"
	askPresence = "record the presence of this worker"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
	logAgain     = 30 * time.Second // the same error is logged once in this time
)

// retryState is a series of errors of the ledger, such as those of a full disk. The worker keeps trying, with
// growing pauses, and does not log the same error each time. The zero value is not an error.
type retryState struct {
	tries    int
	since    time.Time
	what     string // failed last
	logged   string
	loggedAt time.Time
}

// note takes in another error, and reports whether to log it.
func (r *retryState) note(now time.Time, what string, err error) bool {
	if r.tries++; r.tries == 1 {
		r.since = now
	}
	r.what = what
	if r.logged == err.Error() && now.Sub(r.loggedAt) < logAgain {
		return false
	}
	r.logged, r.loggedAt = err.Error(), now
	return true
}

// backoff returns how long to wait before the next try: never so long that a heartbeat for such a lease comes
// too late.
func (r *retryState) backoff(lease time.Duration) time.Duration {
	d := min(firstBackoff<<min(r.tries-1, 10), maxBackoff, lease/12)
	return d + rand.N(d) // #nosec G404 -- no secret
}

// endedBy reports whether success in what ends the series. A successful read does not show that writes work
// again.
func (r *retryState) endedBy(what string) bool {
	return r.tries > 0 && (what == r.what || what == askWrite)
}

// failed takes in an error of the ledger and sets the backoff. If the ledger is gone, everything stops.
func (l *loop) failed(what string, err error) {
	now := time.Now()
	if _, ok := errors.AsType[*claims.DamagedJobError](err); ok {
		l.foundOnlyDamaged(now, what, err)
		return
	}
	if l.retry.note(now, what, err) {
		l.log.Error(what, "error", err)
	}
	gone := errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrClosed) ||
		errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrNewerSchema) ||
		errors.Is(err, ledger.ErrPooled)
	l.startGivingUp(now)
	if gone || l.givenUp(now) {
		l.fatal = err
		for t := range l.active {
			t.cancel(fmt.Errorf("%w: %w", commands.ErrLeaseLost, err))
		}
		return
	}
	l.backoff = l.retry.backoff(l.Lease)
}

// startGivingUp sets the time after which an aborted worker with no active task stops trying to record their
// ends.
func (l *loop) startGivingUp(now time.Time) {
	if l.giveUpAt.IsZero() && l.onlyRecords() {
		l.giveUpAt = now.Add(lastWrites)
	}
}

// givenUp reports whether that time is over.
func (l *loop) givenUp(now time.Time) bool { return l.onlyRecords() && now.After(l.giveUpAt) }

// onlyRecords reports whether this worker was aborted and has nothing left to do but to record ends.
func (l *loop) onlyRecords() bool {
	return len(l.active) == 0 && errors.Is(context.Cause(l.ctx), ErrStopping)
}

// foundOnlyDamaged takes in that every ready job is damaged. A worker that drains ends with that error.
// Another goes on: jobs that are enqueued later need it.
func (l *loop) foundOnlyDamaged(now time.Time, what string, err error) {
	if l.damagedRetry.note(now, what, err) {
		l.log.Error(what, "error", err)
	}
	l.poller.sawOnlyDamaged(now)
	if l.Drain {
		l.stopped, l.damaged = true, err
	}
}

// answered takes in that the ledger has done what was asked.
func (l *loop) answered(what string) {
	if l.retry.endedBy(what) {
		l.log.Info("the ledger answers again", "after", time.Since(l.retry.since).Round(time.Millisecond))
		l.retry = retryState{}
	}
}
