package commands

import (
	"fmt"
	"time"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// MaxSnoozes is how often a job may ask to be run later before that counts as a failure.
const MaxSnoozes = 99

// runtimeGrace is how long a lease may extend past a max runtime, so that the worker can end the job itself.
const runtimeGrace = 15 * time.Second

// decide returns the fact that results from the command c on j at this moment, or why it is refused. It is
// pure. The result of a Succeed is digested with j.Salt, which must be loaded.
//
// Errors: ConflictError where the state of j does not permit c; errNoChange where j is so already;
// errTokenNotLive where the token is not that of the live claim (then decideStale answers); errEvidenceStale
// where what a sweeper saw is no longer true.
func decide(j projection.Job, c action, at time.Time) (journal.Fact, error) {
	if c, ok := c.(ownerCommand); ok {
		if !holdsLive(j, c) {
			return journal.Fact{}, errTokenNotLive
		}
		if err := checkOwner(c, j, j.Worker); err != nil {
			return journal.Fact{}, err
		}
	}
	return c.decide(j, at)
}

// holdsLive reports whether c presents the token of j's live claim.
func holdsLive(j projection.Job, c ownerCommand) bool {
	token, _ := c.credentials()
	return j.State.Held() && token == j.Token
}

// checkOwner refuses the token of a claim that another worker than the one c names was given.
func checkOwner(c ownerCommand, j projection.Job, holder event.Worker) error {
	_, owner := c.credentials()
	if owner == "" || owner == holder.Name {
		return nil
	}
	why := fmt.Sprintf("the claim of this token is worker %q's, not %q's", holder.Name, owner)
	return &ConflictError{c.name(), j.ID, why}
}

func (c claim) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	switch {
	case j.State != event.Queued:
		return journal.Fact{}, conflict(c, j)
	case j.RunAt.After(at):
		return journal.Fact{}, &ConflictError{c.name(), j.ID, "it is to run at " + event.FormatTime(j.RunAt)}
	}
	runtime := minNonZero(j.MaxRuntime, c.MaxRuntime)
	var endBy time.Time
	if runtime > 0 {
		endBy = at.Add(runtime)
	}
	body := &event.Claimed{LeaseUntil: leaseUntil(at, c.Lease, endBy), MaxRuntime: runtime, Limited: c.Limited}
	return journal.Fact{Job: j, Body: body, Worker: c.Worker, Token: c.Token}, nil
}

func (c TakeOver) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	if c.Process == j.Worker {
		return Heartbeat{Lease: c.Lease}.decide(j, at)
	}
	if c.Process.Name != j.Worker.Name {
		return journal.Fact{}, &ConflictError{c.name(), j.ID, fmt.Sprintf("the claim is worker %q's, not %q's",
			j.Worker.Name, c.Process.Name)}
	}
	body := &event.TakenOver{LeaseUntil: leaseUntil(at, c.Lease, j.EndBy)}
	return journal.Fact{Job: j, Worker: c.Process, Body: body}, nil
}

func (c Succeed) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	body := &event.Succeeded{ResultBytes: int64(len(c.Result)), ExitCode: c.ExitCode, Output: c.Output,
		Cost: c.Cost, AfterMaxRuntime: c.AfterMaxRuntime && !j.EndBy.IsZero()}
	if c.Result != nil {
		body.ResultSHA256 = ledger.Digest(j.Salt, c.Result)
	}
	return journal.Fact{Job: j, Body: body, Content: c.Result}, nil
}

func (c Fail) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	body := &event.Failed{ErrorCode: c.code(), ErrorDetail: c.Detail, ExitCode: c.ExitCode, Signal: c.Signal,
		Output: c.Output, Cost: c.Cost}
	switch {
	case c.NoRetry || j.Failures+1 >= j.MaxAttempts:
	case c.RetryIn != nil:
		body.RetryAt = addTruncated(at, *c.RetryIn)
	default:
		body.RetryAt = at.Add(backoff(j, j.Failures+1))
	}
	return journal.Fact{Job: j, Body: body}, nil
}

func (c Fail) code() string {
	if c.Code == "" {
		return "failed"
	}
	return c.Code
}

// snoozedTooOften is the error code of a job that asked to run later more than MaxSnoozes times.
const snoozedTooOften = "snoozed_too_often"

func (c Release) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	if c.Snooze && j.Snoozes >= MaxSnoozes {
		return Fail{Code: snoozedTooOften, Detail: c.Reason, ExitCode: c.ExitCode, Output: c.Output,
			Cost: c.Cost}.decide(j, at)
	}
	delay := c.Delay
	if c.Snooze && delay == 0 {
		delay = backoff(j, j.Snoozes+1)
	}
	body := &event.Released{Reason: c.Reason, RunAt: addTruncated(at, delay), Snooze: c.Snooze,
		Output: c.Output, ExitCode: c.ExitCode, Cost: c.Cost}
	return journal.Fact{Job: j, Body: body}, nil
}

func (c Cancel) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	switch {
	case j.State == event.CancelledState:
		return journal.Fact{}, errNoChange
	case c.Token != "" && !(j.State.Held() && j.Token == c.Token):
		return journal.Fact{}, &RefusedError{Command: c.name(), Job: j.ID, Token: c.Token,
			Why: "the claim has ended", Err: ErrLeaseLost}
	case j.State.Final():
		return journal.Fact{}, conflict(c, j)
	}
	return journal.Fact{Job: j, Body: &event.Cancelled{Reason: c.Reason}}, nil
}

func (c Retry) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	switch {
	case j.Erased:
		return journal.Fact{}, &ConflictError{c.name(), j.ID, "its payload was erased"}
	case !j.State.Final() || c.NotSucceeded && j.State == event.SucceededState:
		return journal.Fact{}, conflict(c, j)
	}
	if c.NotDependent && c.dependent {
		return journal.Fact{}, &ConflictError{c.name(), j.ID, "it was cancelled because of a job that it waits for"}
	}
	body := &event.Retried{Reason: c.Reason, Alone: c.Alone, MaxRuntime: c.MaxRuntime}
	if !c.Now && c.runsUntil.After(at) {
		body.RunAt = c.runsUntil
	}
	return journal.Fact{Job: j, Body: body}, nil
}

func (c Reschedule) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	if j.State != event.Queued && j.State != event.Blocked {
		return journal.Fact{}, conflict(c, j)
	}
	body := &event.Rescheduled{RunAt: j.RunAt, Priority: j.Priority, Reason: c.Reason}
	if c.Priority != nil {
		body.Priority = *c.Priority
	}
	if c.RunAt != nil {
		body.RunAt = c.RunAt.UTC().Truncate(time.Microsecond)
		if body.RunAt.Before(at) && !body.RunAt.Equal(j.RunAt) {
			body.RunAt = at
		}
	}
	if body.Priority == j.Priority && body.RunAt.Equal(j.RunAt) {
		return journal.Fact{}, errNoChange
	}
	return journal.Fact{Job: j, Body: body}, nil
}

// decide leaves it to record to say in the event how much was erased.
func (c Erase) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	switch {
	case j.Erased:
		return journal.Fact{}, errNoChange
	case !j.State.Final():
		return journal.Fact{}, conflict(c, j)
	}
	return journal.Fact{Job: j, Body: &event.Erased{Reason: c.Reason}}, nil
}

func conflict(c action, j projection.Job) error {
	return &ConflictError{c.name(), j.ID, check.StateText(j.State)}
}

// minNonZero returns the shorter of two durations of which 0 means no limit.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// addTruncated is at + d in whole microseconds, as it will be stored: a replay must read what was computed
// here.
func addTruncated(at time.Time, d time.Duration) time.Time {
	return at.Add(d).Truncate(time.Microsecond)
}
