package commands

import (
	"time"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// This file exports what the tests of the pure rules need.

type (
	Action       = action
	OwnerCommand = ownerCommand
	Claim        = claim
	Reclaim      = reclaim
	Fact         = fact
	PastClaim    = pastClaim
)

var (
	Decide      = decide
	DecideStale = decideStale
	DecideStop  = decideStop
	Envelope    = fact.envelope
	ApplyTo     = applyTo
)

// NewJob returns the action of enqueuing e as a job with this id.
func NewJob(e *Enqueue, id event.JobID, salt []byte) Action { return newJob{e, id, salt} }

// Body returns the body of the fact's event, or nil without a fact.
func (f fact) Body() event.Body { return f.body }

// On returns the fact with j as its job.
func (f fact) On(j projection.Job) Fact {
	f.job = j
	return f
}

// By returns the fact with this actor.
func (f fact) By(actor string) Fact {
	f.actor = actor
	return f
}

// Add takes the next event of the job j into account, for a token and a command.
func (p *pastClaim) Add(e event.Event, token, command string, j projection.Job) {
	p.add(e, token, command, j)
}

// While returns c for a job whose last command may still run until then.
func (c Retry) While(runsUntil time.Time) Retry {
	c.runsUntil = runsUntil
	return c
}

// Sender returns the token and the name of c.
func Sender(c OwnerCommand) (token, name string) {
	token, _ = c.credentials()
	return token, c.name()
}

// SetLoadStep sets how many events one transaction of a load in steps appends, until restore is called.
func SetLoadStep(events int) (restore func()) {
	before := loadStep
	loadStep = events
	return func() { loadStep = before }
}
