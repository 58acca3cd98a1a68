package commands

import (
	"context"
	"errors"
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// reclaim is the action of taking a job from an owner whose lease has expired. Token and LeaseUntil are what
// the sweeper saw.
type reclaim struct {
	Token      string
	LeaseUntil time.Time
}

func (reclaim) name() string { return "reclaim" }

// reclaim takes the job of l back in tx; done is false where its claim is not as l has it any more.
func (w *Sweeper) reclaim(ctx context.Context, tx *ledger.Tx, l projection.Lease) (after projection.Job,
	done bool, err error) {
	c := reclaim{Token: l.Token, LeaseUntil: l.Until}
	after, err = apply(ctx, tx, w.Actor, projection.Job{ID: l.ID}, c)
	if errors.Is(err, errEvidenceStale) {
		return after, false, nil
	}
	return after, err == nil, err
}

func (c reclaim) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	sameClaim := j.State.Held() && j.Token == c.Token && j.LeaseUntil.Equal(c.LeaseUntil)
	if !sameClaim || j.LeaseUntil.After(at) {
		return journal.Fact{}, errEvidenceStale
	}
	body := &event.Reclaimed{Reason: event.LeaseExpired, LastHeartbeat: j.HeartbeatAt,
		LeaseUntil: j.LeaseUntil, StillRunning: j.CannotEnd}
	if !j.EndBy.IsZero() && !j.HeartbeatAt.Before(j.EndBy) {
		// The owner was alive when the time was over, and did not end the job. An owner that was silent by then
		// has died or lost its way to the ledger, however short the job's time was.
		body.Reason = event.MaxRuntime
	}
	switch {
	case j.Failures+1 >= j.MaxAttempts:
	case body.Reason == event.LeaseExpired && j.Failures == 0:
		body.RetryAt = at // one lost worker says nothing about the job; a job that kills workers has to wait
	default:
		body.RetryAt = at.Add(backoff(j, j.Failures+1))
	}
	return journal.Fact{Job: j, Body: body}, nil
}
