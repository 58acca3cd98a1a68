package commands

import (
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
)

// decide extends the lease. A command that cannot be ended holds its claim beyond the max runtime, too.
func (c Heartbeat) decide(j projection.Job, at time.Time) (journal.Fact, error) {
	endBy := j.EndBy
	if c.CannotEnd != "" {
		endBy = time.Time{}
	}
	body := &event.Heartbeat{LeaseUntil: leaseUntil(at, c.Lease, endBy), Progress: c.Progress, Note: c.Note,
		CannotEnd: c.CannotEnd}
	return journal.Fact{Job: j, Body: body}, nil
}

// leaseUntil is at + lease. It does not pass endBy (zero: no limit) and its grace, so that endless heartbeats
// cannot outlive a max runtime.
func leaseUntil(at time.Time, lease time.Duration, endBy time.Time) time.Time {
	until := addTruncated(at, lease)
	if !endBy.IsZero() && until.After(endBy.Add(runtimeGrace)) {
		return endBy.Add(runtimeGrace)
	}
	return until
}

// longestSurvival bounds what one Survived holds: after the death of all who watch the command, what waits
// for its end waits no longer.
const longestSurvival = 10 * time.Minute

// decideSurvived returns the fact that the command of a cancelled claim still runs. The fact holds for a
// lease, and longer the longer the command has lived, so that few are recorded in a night. There is none
// while the last one holds, once the command has stopped, or where an operator has had the job run
// regardless.
func decideSurvived(j projection.Job, past follow.PastClaim, c Heartbeat, at time.Time) journal.Fact {
	if past.Stopped || j.State != event.CancelledState && !(j.State == event.Queued && past.Waits) {
		return journal.Fact{}
	}
	hold := max(c.Lease, min(at.Sub(past.Ending.At), longestSurvival))
	if past.Until.Sub(at) >= hold*2/3 {
		return journal.Fact{}
	}
	body := &event.Survived{CannotEnd: c.CannotEnd, LeaseUntil: addTruncated(at, hold)}
	return journal.Fact{Job: j, Body: body, Worker: past.Given.Worker, Attempt: past.Given.Attempt}
}
