package projection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// ErrIllegal marks an event that cannot follow the events before it.
var ErrIllegal = errors.New("projection: illegal transition")

// from lists, per kind, the states in which such an event may happen.
var from = map[event.Kind][]event.State{
	event.KindEnqueued:    {0},
	event.KindClaimed:     {event.Queued},
	event.KindHeartbeat:   {event.ClaimedState, event.Running},
	event.KindSucceeded:   {event.ClaimedState, event.Running},
	event.KindFailed:      {event.ClaimedState, event.Running},
	event.KindReleased:    {event.ClaimedState, event.Running},
	event.KindReclaimed:   {event.ClaimedState, event.Running},
	event.KindCancelled:   {event.Queued, event.ClaimedState, event.Running, event.Blocked},
	event.KindRetried:     {event.SucceededState, event.FailedState, event.CancelledState},
	event.KindRescheduled: {event.Queued, event.Blocked},
	event.KindUnblocked:   {event.Blocked},
	event.KindTakenOver:   {event.ClaimedState, event.Running},
	event.KindReplaced:    {event.Queued, event.Blocked},
	event.KindEdited:      {event.Queued, event.Blocked},
}

// Evolve returns j after e, the next event of the same job. It is pure: commands and every replay use it. It
// returns ErrIllegal if e cannot follow, and ledger.ErrUnknownKind if e does not concern a job.
func Evolve(j Job, e event.Event) (Job, error) {
	if err := mayFollow(j, e); err != nil {
		return j, err
	}
	if e.Seq != 0 {
		j.Seq = e.Seq
	}
	switch b := e.Body.(type) {
	case *event.Enqueued:
		j = Job{N: e.N, ID: e.Job, Seq: e.Seq, State: event.Queued,
			Queue: b.Queue, Priority: b.Priority, RunAt: b.RunAt, Key: b.Key, Tags: b.Tags,
			MaxAttempts: b.MaxAttempts, MaxRuntime: b.MaxRuntime, Version: b.Version, Requires: b.Requires,
			Schedule: b.Schedule, Tick: b.Tick, Group: b.Group, Backoff: b.Backoff, After: b.After,
			UniqueWhile: b.UniqueWhile, Form: b.Form}
		if b.Blocked {
			j.State = event.Blocked
		}
	case *event.Claimed:
		j.KeyFree = j.UniqueWhile == event.WhileQueued
		j.State, j.Attempt, j.Worker, j.Token = event.ClaimedState, e.Attempt, e.Worker, e.Token
		j.Limited = b.Limited
		j.ClaimedAt, j.HeartbeatAt, j.LeaseUntil = e.At, e.At, b.LeaseUntil
		if b.MaxRuntime > 0 {
			j.EndBy = e.At.Add(b.MaxRuntime)
		}
	case *event.Heartbeat:
		j.State, j.HeartbeatAt, j.LeaseUntil = event.Running, e.At, b.LeaseUntil
		j.CannotEnd = b.CannotEnd
		if b.Progress != nil {
			j.Progress = b.Progress
		}
		if b.Note != "" {
			j.Note = b.Note
		}
	case *event.Succeeded:
		j = ended(j, event.SucceededState, e.At)
		j.ErrorCode, j.ErrorDetail = "", ""
	case *event.Failed:
		j.Failures++
		j.ErrorCode, j.ErrorDetail = b.ErrorCode, b.ErrorDetail
		j = retryOrFail(j, b.RetryAt, e.At)
	case *event.Released:
		if b.Snooze {
			j.Snoozes++
		}
		j = queuedAgain(j, b.RunAt)
	case *event.Reclaimed:
		j.Failures++
		j.ErrorCode, j.ErrorDetail = b.Reason, ""
		j = retryOrFail(j, b.RetryAt, e.At)
	case *event.Cancelled:
		j = ended(j, event.CancelledState, e.At)
	case *event.Retried:
		runAt := e.At
		if !b.RunAt.IsZero() {
			runAt = b.RunAt
		}
		j = queuedAgain(j, runAt)
		j.Failures, j.Snoozes, j.FinishedAt = 0, 0, time.Time{}
		j.ErrorCode, j.ErrorDetail, j.Result = "", "", nil
		j.KeyFree = b.KeyTaken && j.UniqueWhile != ""
		j.MaxRuntime = cmp.Or(b.MaxRuntime, j.MaxRuntime)
		if b.Because != "" {
			if e.From != event.CancelledState && e.From != 0 {
				return j, fmt.Errorf("%w: retried because of %s while %q", ErrIllegal, b.Because, e.From)
			}
			j.State = event.Blocked
		}
	case *event.Unblocked:
		if !b.Blocked {
			j.State = event.Queued
			if j.RunAt.Before(e.At) {
				j.RunAt = e.At
			}
		}
	case *event.Replaced:
		j.PayloadAt, j.Payload = e.Pos, nil
	case *event.Edited:
		j.MaxAttempts, j.MaxRuntime = cmp.Or(b.MaxAttempts, j.MaxAttempts), cmp.Or(b.MaxRuntime, j.MaxRuntime)
		j.Backoff = cmp.Or(b.Backoff, j.Backoff)
		if len(b.Requires) > 0 {
			j.Requires = b.Requires
		}
		if j.Form == event.FormArgv && !slices.Contains(j.Requires, event.LabelArgv) {
			return j, fmt.Errorf("%w: edited without the label %s", ErrIllegal, event.LabelArgv)
		}
	case *event.Rescheduled:
		j.RunAt, j.Priority = b.RunAt, b.Priority
	case *event.TakenOver:
		j.State, j.Worker, j.HeartbeatAt, j.LeaseUntil = event.Running, e.Worker, e.At, b.LeaseUntil
	case *event.Stopped, *event.Survived:
		// a fact about a command whose claim was over; the job is as it was
	case *event.Refused:
		// a fact about another attempt; the job does not change
	case *event.Erased:
		j.Erased, j.Payload, j.Salt, j.Result = true, nil, nil, nil
	default:
		return j, fmt.Errorf("%w: %T does not concern a job", ledger.ErrUnknownKind, e.Body)
	}
	return j, nil
}

// mayFollow checks what must hold of every event before its body is applied.
func mayFollow(j Job, e event.Event) error {
	kind := e.Kind()
	if kind.OfJob() && !kind.HasSeq() {
		if e.Seq != 0 || j.State == 0 {
			return fmt.Errorf("%w: %s with seq %d on a job that is %q", ErrIllegal, kind, e.Seq, j.State)
		}
		if kind == event.KindErased && !j.State.Final() {
			return fmt.Errorf("%w: erased while %s", ErrIllegal, j.State)
		}
		if kind.AfterClaim() && (e.Attempt > j.Attempt || e.Attempt == j.Attempt && j.State.Held()) {
			return fmt.Errorf("%w: %s of attempt %d, which has not ended", ErrIllegal, kind, e.Attempt)
		}
		return nil
	}
	switch owner := e.Worker != (event.Worker{}) || e.Attempt != 0; {
	case !slices.Contains(from[kind], j.State):
		return fmt.Errorf("%w: %s while %q", ErrIllegal, kind, j.State)
	case e.Seq != j.Seq+1:
		return fmt.Errorf("%w: %s with seq %d after %d", ErrIllegal, kind, e.Seq, j.Seq)
	case kind == event.KindClaimed && e.Attempt != j.Attempt+1:
		return fmt.Errorf("%w: claimed as attempt %d after %d", ErrIllegal, e.Attempt, j.Attempt)
	case kind == event.KindClaimed && e.Token == "":
		return fmt.Errorf("%w: claimed without a token", ErrIllegal)
	case kind == event.KindClaimed:
	case kind == event.KindTakenOver && e.Worker.Name == j.Worker.Name && e.Worker != j.Worker &&
		e.Token == j.Token && e.Attempt == j.Attempt:
	case kind == event.KindTakenOver:
		return fmt.Errorf("%w: attempt %d of %q taken over by a process of %q for attempt %d", ErrIllegal,
			j.Attempt, j.Worker.Name, e.Worker.Name, e.Attempt)
	case j.State.Held() && (e.Token != j.Token || e.Attempt != j.Attempt || e.Worker != j.Worker):
		return fmt.Errorf("%w: %s of attempt %d by %q, but attempt %d of %q is live", ErrIllegal, kind,
			e.Attempt, e.Worker.Name, j.Attempt, j.Worker.Name)
	case !j.State.Held() && owner:
		return fmt.Errorf("%w: %s names a claim, but no claim is live", ErrIllegal, kind)
	}
	return nil
}

func retryOrFail(j Job, retryAt, at time.Time) Job {
	if retryAt.IsZero() {
		return ended(j, event.FailedState, at)
	}
	return queuedAgain(j, retryAt)
}

// queuedAgain clears the claim: a queued job has no owner.
func queuedAgain(j Job, runAt time.Time) Job {
	j.State, j.RunAt = event.Queued, runAt
	j.Worker, j.ClaimedAt, j.HeartbeatAt = event.Worker{}, time.Time{}, time.Time{}
	j.Token, j.Limited, j.LeaseUntil, j.EndBy = "", false, time.Time{}, time.Time{}
	j.Progress, j.Note, j.CannotEnd = nil, "", ""
	return j
}

// ended keeps the owner and when its claim began, and clears the rest of the claim. A key that is not for
// ever is free then.
func ended(j Job, s event.State, at time.Time) Job {
	j.State, j.FinishedAt = s, at
	j.KeyFree = j.UniqueWhile != ""
	j.Token, j.Limited, j.LeaseUntil, j.EndBy = "", false, time.Time{}, time.Time{}
	j.CannotEnd = ""
	return j
}
