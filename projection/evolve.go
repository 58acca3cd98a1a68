package projection

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
)

// ErrIllegal marks an event that cannot follow the events before it.
var ErrIllegal = errors.New("projection: illegal transition")

// from lists, per kind, the states in which such an event may happen.
var from = map[ledger.Kind][]ledger.State{
	ledger.KindEnqueued:    {0},
	ledger.KindClaimed:     {ledger.Queued},
	ledger.KindHeartbeat:   {ledger.ClaimedState, ledger.Running},
	ledger.KindSucceeded:   {ledger.ClaimedState, ledger.Running},
	ledger.KindFailed:      {ledger.ClaimedState, ledger.Running},
	ledger.KindReleased:    {ledger.ClaimedState, ledger.Running},
	ledger.KindReclaimed:   {ledger.ClaimedState, ledger.Running},
	ledger.KindCancelled:   {ledger.Queued, ledger.ClaimedState, ledger.Running},
	ledger.KindRetried:     {ledger.SucceededState, ledger.FailedState, ledger.CancelledState},
	ledger.KindRescheduled: {ledger.Queued},
	ledger.KindTakenOver:   {ledger.ClaimedState, ledger.Running},
}

// Evolve returns j after e, the next event of the same job. It is pure: commands and every replay use it. It
// returns ErrIllegal if e cannot follow, and ledger.ErrUnknownKind if e does not concern a job.
func Evolve(j Job, e ledger.Event) (Job, error) {
	if err := mayFollow(j, e); err != nil {
		return j, err
	}
	if e.Seq != 0 {
		j.Seq = e.Seq
	}
	switch b := e.Body.(type) {
	case *ledger.Enqueued:
		j = Job{N: e.N, ID: e.Job, Seq: e.Seq, State: ledger.Queued,
			Queue: b.Queue, Priority: b.Priority, RunAt: b.RunAt, Key: b.Key, Tags: b.Tags,
			MaxAttempts: b.MaxAttempts, MaxRuntime: b.MaxRuntime, Version: b.Version, Requires: b.Requires}
	case *ledger.Claimed:
		j.State, j.Attempt, j.Worker, j.Token = ledger.ClaimedState, e.Attempt, e.Worker, e.Token
		j.ClaimedAt, j.HeartbeatAt, j.LeaseUntil = e.At, e.At, b.LeaseUntil
		if b.MaxRuntime > 0 {
			j.EndBy = e.At.Add(b.MaxRuntime)
		}
	case *ledger.Heartbeat:
		j.State, j.HeartbeatAt, j.LeaseUntil = ledger.Running, e.At, b.LeaseUntil
		if b.Progress != nil {
			j.Progress = b.Progress
		}
		if b.Note != "" {
			j.Note = b.Note
		}
	case *ledger.Succeeded:
		j = ended(j, ledger.SucceededState, e.At)
		j.ErrorCode, j.ErrorDetail = "", ""
	case *ledger.Failed:
		j.Failures++
		j.ErrorCode, j.ErrorDetail = b.ErrorCode, b.ErrorDetail
		j = retryOrFail(j, b.RetryAt, e.At)
	case *ledger.Released:
		if b.Snooze {
			j.Snoozes++
		}
		j = queuedAgain(j, b.RunAt)
	case *ledger.Reclaimed:
		j.Failures++
		j.ErrorCode, j.ErrorDetail = b.Reason, ""
		j = retryOrFail(j, b.RetryAt, e.At)
	case *ledger.Cancelled:
		j = ended(j, ledger.CancelledState, e.At)
	case *ledger.Retried:
		runAt := e.At
		if !b.RunAt.IsZero() {
			runAt = b.RunAt
		}
		j = queuedAgain(j, runAt)
		j.Failures, j.Snoozes, j.FinishedAt = 0, 0, time.Time{}
		j.ErrorCode, j.ErrorDetail, j.Result = "", "", nil
	case *ledger.Rescheduled:
		j.RunAt, j.Priority = b.RunAt, b.Priority
	case *ledger.TakenOver:
		j.State, j.Worker, j.HeartbeatAt, j.LeaseUntil = ledger.Running, e.Worker, e.At, b.LeaseUntil
	case *ledger.Stopped:
		// a fact about a command whose claim was over; the job is as it was
	case *ledger.Refused:
		// a fact about another attempt; the job does not change
	case *ledger.Erased:
		j.Erased, j.Payload, j.Salt, j.Result = true, nil, nil, nil
	default:
		return j, fmt.Errorf("%w: %T does not concern a job", ledger.ErrUnknownKind, e.Body)
	}
	return j, nil
}

// mayFollow checks what must hold of every event before its body is applied.
func mayFollow(j Job, e ledger.Event) error {
	kind := e.Kind()
	switch kind {
	case ledger.KindRefused, ledger.KindErased, ledger.KindStopped:
		if e.Seq != 0 || j.State == 0 {
			return fmt.Errorf("%w: %s with seq %d on a job that is %q", ErrIllegal, kind, e.Seq, j.State)
		}
		if kind == ledger.KindErased && !j.State.Final() {
			return fmt.Errorf("%w: erased while %s", ErrIllegal, j.State)
		}
		if kind == ledger.KindStopped && (e.Attempt > j.Attempt || e.Attempt == j.Attempt && j.State.Held()) {
			return fmt.Errorf("%w: stopped of attempt %d, which has not ended", ErrIllegal, e.Attempt)
		}
		return nil
	}
	switch owner := e.Worker != (ledger.Worker{}) || e.Attempt != 0; {
	case !slices.Contains(from[kind], j.State):
		return fmt.Errorf("%w: %s while %q", ErrIllegal, kind, j.State)
	case e.Seq != j.Seq+1:
		return fmt.Errorf("%w: %s with seq %d after %d", ErrIllegal, kind, e.Seq, j.Seq)
	case kind == ledger.KindClaimed && e.Attempt != j.Attempt+1:
		return fmt.Errorf("%w: claimed as attempt %d after %d", ErrIllegal, e.Attempt, j.Attempt)
	case kind == ledger.KindClaimed && e.Token == "":
		return fmt.Errorf("%w: claimed without a token", ErrIllegal)
	case kind == ledger.KindClaimed:
	case kind == ledger.KindTakenOver && e.Worker.Name == j.Worker.Name && e.Worker != j.Worker &&
		e.Token == j.Token && e.Attempt == j.Attempt:
	case kind == ledger.KindTakenOver:
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
		return ended(j, ledger.FailedState, at)
	}
	return queuedAgain(j, retryAt)
}

// queuedAgain clears the claim: a queued job has no owner.
func queuedAgain(j Job, runAt time.Time) Job {
	j.State, j.RunAt = ledger.Queued, runAt
	j.Worker, j.ClaimedAt, j.HeartbeatAt = ledger.Worker{}, time.Time{}, time.Time{}
	j.Token, j.LeaseUntil, j.EndBy = "", time.Time{}, time.Time{}
	j.Progress, j.Note = nil, ""
	return j
}

// ended keeps the owner and when its claim began, and clears the rest of the claim.
func ended(j Job, s ledger.State, at time.Time) Job {
	j.State, j.FinishedAt = s, at
	j.Token, j.LeaseUntil, j.EndBy = "", time.Time{}, time.Time{}
	return j
}
