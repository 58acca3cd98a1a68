package commands

import (
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
	Envelope    = fact.envelope
	ApplyTo     = applyTo
)

// NewJob is the action of enqueuing e as a job with this id.
func NewJob(e *Enqueue, id event.JobID, salt []byte) Action { return newJob{e, id, salt} }

// Body returns the body of the fact's event; nil if there is no fact.
func (f fact) Body() event.Body { return f.body }

// By returns the fact as one of this actor.
func (f fact) By(actor string) Fact {
	f.actor = actor
	return f
}

// Add takes in the next event of the job that a token and a command are about.
func (p *pastClaim) Add(e event.Event, token, command string) {
	p.add(e, token, command, projection.Job{})
}

// Sender returns the token and the name of c.
func Sender(c OwnerCommand) (token, name string) {
	token, _ = c.credentials()
	return token, c.name()
}
