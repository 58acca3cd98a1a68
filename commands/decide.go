package commands

import (
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// MaxSnoozes is how often a job may ask to be run later before that counts as a failure.
const MaxSnoozes = 99

// Decide says what happens when c is asked of j at this moment: the bodies of the events, or why not. It is pure.
//
// Errors: ConflictError where the state does not permit it; internal ones where nothing has to happen, where the
// token is not the live one (then DecideStale has the answer), and where a sweeper's evidence is out of date.
func Decide(j projection.Job, c Command, at time.Time) ([]ledger.Body, error) {
	if token, owner, ok := credentials(c); ok {
		if token != j.Token || !j.State.Held() {
			return nil, errTokenNotLive
		}
		if err := checkOwner(c, j, owner, j.Worker); err != nil {
			return nil, err
		}
	}
	switch c := c.(type) {
	case Claim:
		switch {
		case j.State != ledger.Queued:
			return nil, conflict(c, j)
		case j.RunAt.After(at):
			return nil, &ConflictError{c.name(), j.ID, "it is to run at " + ledger.FormatTime(j.RunAt)}
		}
		runtime := shorter(j.MaxRuntime, c.MaxRuntime)
		var endBy time.Time
		if runtime > 0 {
			endBy = at.Add(runtime)
		}
		return is(&ledger.Claimed{LeaseUntil: leaseUntil(at, c.Lease, endBy), MaxRuntime: runtime})
	case Heartbeat:
		return is(&ledger.Heartbeat{LeaseUntil: leaseUntil(at, c.Lease, j.EndBy), Progress: c.Progress, Note: c.Note})
	case Succeed:
		return is(&ledger.Succeeded{ResultBytes: int64(len(c.Result)), ExitCode: c.ExitCode, Output: c.Output})
	case Fail:
		return is(failed(j, c, at))
	case Release:
		return release(j, c, at)
	case Reclaim:
		return reclaim(j, c, at)
	case Cancel:
		switch {
		case j.State == ledger.CancelledState:
			return nil, errNoChange
		case j.State.Final():
			return nil, conflict(c, j)
		}
		return is(&ledger.Cancelled{Reason: c.Reason})
	case Retry:
		switch {
		case j.Erased:
			return nil, &ConflictError{c.name(), j.ID, "its payload was erased"}
		case !j.State.Final():
			return nil, conflict(c, j)
		}
		return is(&ledger.Retried{Reason: c.Reason})
	case Reschedule:
		return reschedule(j, c, at)
	case Erase:
		return erase(j, c)
	}
	return nil, fmt.Errorf("commands: no rule for %T", c)
}

func is(b ledger.Body) ([]ledger.Body, error) { return []ledger.Body{b}, nil }

func conflict(c Command, j projection.Job) error {
	verb := "is"
	if j.State.Final() {
		verb = "has"
	}
	if j.State == ledger.CancelledState {
		verb = "was"
	}
	return &ConflictError{c.name(), j.ID, fmt.Sprintf("it %s %s", verb, j.State)}
}

// checkOwner refuses a claim's token in the hands of somebody who gives another name than the claim's.
func checkOwner(c Command, j projection.Job, owner string, claimer ledger.Worker) error {
	if owner == "" || owner == claimer.Name {
		return nil
	}
	return &ConflictError{c.name(), j.ID, fmt.Sprintf("the claim of this token is worker %q's, not %q's", claimer.Name, owner)}
}

func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// later is at + d in whole microseconds, as it will be stored: what the live path computes is what a replay reads.
func later(at time.Time, d time.Duration) time.Time { return at.Add(d).Truncate(time.Microsecond) }

// runtimeGrace is how long after a max runtime a lease may still run, for the worker to end the job itself.
const runtimeGrace = 15 * time.Second

// leaseUntil is at + lease, but no claim or heartbeat reaches past the max runtime and its grace: so a job that
// heartbeats for ever comes to its lease's end too.
func leaseUntil(at time.Time, lease time.Duration, endBy time.Time) time.Time {
	until := later(at, lease)
	if !endBy.IsZero() && until.After(endBy.Add(runtimeGrace)) {
		return endBy.Add(runtimeGrace)
	}
	return until
}

func failed(j projection.Job, c Fail, at time.Time) *ledger.Failed {
	b := &ledger.Failed{ErrorCode: c.Code, ErrorDetail: c.Detail, ExitCode: c.ExitCode, Signal: c.Signal, Output: c.Output}
	if b.ErrorCode == "" {
		b.ErrorCode = "failed"
	}
	if c.NoRetry || j.Failures+1 >= j.MaxAttempts {
		return b
	}
	b.RetryAt = at.Add(Backoff(j.ID, j.Attempt, j.Failures+1))
	if c.RetryIn != nil {
		b.RetryAt = later(at, *c.RetryIn)
	}
	return b
}

func release(j projection.Job, c Release, at time.Time) ([]ledger.Body, error) {
	if c.Snooze && j.Snoozes >= MaxSnoozes {
		return is(failed(j, Fail{Code: "snoozed_too_often", Detail: c.Reason, Output: c.Output}, at))
	}
	delay := c.Delay
	if c.Snooze && delay == 0 {
		delay = Backoff(j.ID, j.Attempt, j.Snoozes+1)
	}
	return is(&ledger.Released{Reason: c.Reason, RunAt: later(at, delay), Snooze: c.Snooze, Output: c.Output})
}

func reclaim(j projection.Job, c Reclaim, at time.Time) ([]ledger.Body, error) {
	if !j.State.Held() || j.Token != c.Token || !j.LeaseUntil.Equal(c.LeaseUntil) || j.LeaseUntil.After(at) {
		return nil, errEvidenceStale
	}
	b := &ledger.Reclaimed{Reason: ledger.LeaseExpired, LastHeartbeat: j.HeartbeatAt, LeaseUntil: j.LeaseUntil}
	if !j.EndBy.IsZero() && !at.Before(j.EndBy) {
		b.Reason = ledger.MaxRuntime
	}
	if j.Failures+1 < j.MaxAttempts {
		b.RetryAt = at.Add(Backoff(j.ID, j.Attempt, j.Failures+1))
	}
	return is(b)
}

func reschedule(j projection.Job, c Reschedule, at time.Time) ([]ledger.Body, error) {
	if j.State != ledger.Queued {
		return nil, conflict(c, j)
	}
	b := &ledger.Rescheduled{RunAt: j.RunAt, Priority: j.Priority, Reason: c.Reason}
	if c.Priority != nil {
		b.Priority = *c.Priority
	}
	if c.RunAt != nil {
		b.RunAt = c.RunAt.UTC().Truncate(time.Microsecond)
		if b.RunAt.Before(at) && !b.RunAt.Equal(j.RunAt) {
			b.RunAt = at
		}
	}
	if b.Priority == j.Priority && b.RunAt.Equal(j.RunAt) {
		return nil, errNoChange
	}
	return is(b)
}

func erase(j projection.Job, c Erase) ([]ledger.Body, error) {
	switch {
	case j.Erased:
		return nil, errNoChange
	case !j.State.Final():
		return nil, conflict(c, j)
	}
	return is(&ledger.Erased{Reason: c.Reason})
}
