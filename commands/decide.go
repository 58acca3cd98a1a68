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
// token is not the live one (then DecideLate has the answer), and where a sweeper's evidence is out of date.
func Decide(j projection.Job, c Command, at time.Time) ([]ledger.Body, error) {
	if token, owner, ok := credentials(c); ok {
		if token != j.Token || !j.State.Held() {
			return nil, errStale
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
			return nil, errNothing
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
		return nil, errGone
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
		return nil, errNothing
	}
	return is(b)
}

// Past is what became of the claim of a token that is not live any more, read from the job's events.
type Past struct {
	Claim   *ledger.Event // where that token was given; nil: never to this job
	Ending  *ledger.Event // how that claim ended; nil while it has not
	Latest  bool          // no later claim was made
	Refused bool          // this token and command have been refused and recorded before
	Salt    []byte        // of the job's digests; nil once erased
}

// DecideLate says what happens when an owner's command comes with a token that is not live. It is pure.
//
// The same command with the same content as the claim's own ending gives nil and no body: it was answered before,
// and the answer was lost. Everything else is a RefusedError, with the body of the refused event unless that has
// been recorded before.
func DecideLate(j projection.Job, past Past, c Command) ([]ledger.Body, error) {
	token, owner, _ := credentials(c)
	refused := &RefusedError{Command: c.name(), Job: j.ID, Token: token, Err: ErrLeaseLost}
	switch {
	case past.Claim == nil:
		refused.Why = "this token was never given for it"
	case past.Ending == nil:
		refused.Why = "the claim was not found to end" // cannot be while the token is not live
	case past.Ending.Kind() == ledger.KindReclaimed:
		refused.Why = fmt.Sprintf("the lease was lost: %s reclaimed it at %s (%s)", past.Ending.Actor,
			ledger.FormatTime(past.Ending.At), past.Ending.Body.(*ledger.Reclaimed).Reason)
	case past.Ending.Kind() == ledger.KindCancelled && past.Latest:
		refused.Why, refused.Err = fmt.Sprintf("%s cancelled the job at %s", past.Ending.Actor, ledger.FormatTime(past.Ending.At)), ErrCancelled
	case past.Ending.Kind() == ledger.KindCancelled:
		refused.Why = "the job was cancelled and has been claimed anew"
	case sameEnding(*past.Ending, past.Salt, c):
		return nil, checkOwner(c, j, owner, past.Claim.Worker)
	default:
		refused.Why, refused.Err = fmt.Sprintf("the claim has ended: %s at %s", past.Ending.Kind(), ledger.FormatTime(past.Ending.At)), ErrConflict
	}
	if past.Refused {
		return nil, refused
	}
	b := &ledger.Refused{Command: c.name(), Why: refused.Why}
	if s, ok := c.(Succeed); ok && s.Result != nil {
		b.OfferedBytes = int64(len(s.Result))
		if past.Salt != nil {
			b.OfferedSHA256 = ledger.Digest(past.Salt, s.Result)
		}
	}
	return []ledger.Body{b}, refused
}

// sameEnding reports whether c is what ended the claim, sent once more.
func sameEnding(ending ledger.Event, salt []byte, c Command) bool {
	switch b := ending.Body.(type) {
	case *ledger.Succeeded:
		c, ok := c.(Succeed)
		if !ok || !sameCode(b.ExitCode, c.ExitCode) || (b.ResultSHA256 == "") != (c.Result == nil) {
			return false
		}
		return c.Result == nil || salt != nil && b.ResultSHA256 == ledger.Digest(salt, c.Result)
	case *ledger.Failed:
		if c, ok := c.(Release); ok {
			return c.Snooze && b.ErrorCode == "snoozed_too_often" && b.ErrorDetail == c.Reason
		}
		c, ok := c.(Fail)
		code := c.Code
		if code == "" {
			code = "failed"
		}
		return ok && b.ErrorCode == code && b.ErrorDetail == c.Detail && sameCode(b.ExitCode, c.ExitCode) && b.Signal == c.Signal &&
			(b.RetryAt.IsZero() || !c.NoRetry)
	case *ledger.Released:
		c, ok := c.(Release)
		return ok && b.Reason == c.Reason && b.Snooze == c.Snooze
	}
	return false
}

func sameCode(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
