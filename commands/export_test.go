package commands

import (
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// This file exports what the tests of the pure rules need.

type (
	Action       = action
	OwnerCommand = ownerCommand
	Claim        = claim
	Reclaim      = reclaim
	Fact         = journal.Fact
	PastClaim    = follow.PastClaim
)

var (
	Decide      = decide
	DecideStale = decideStale
	DecideStop  = decideStop
	Envelope    = journal.Fact.Envelope
	ApplyTo     = applyTo
)

// NewJob returns the action of enqueuing e as a job with this id.
func NewJob(e *Enqueue, id event.JobID, salt []byte) Action {
	return newJob{Enqueue: e, id: id, salt: salt}
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

// SetResolvedAtOnce sets how many edges the transaction that ends a job resolves.
func SetResolvedAtOnce(edges int) (restore func()) {
	before := journal.ResolvedAtOnce
	journal.ResolvedAtOnce = edges
	return func() { journal.ResolvedAtOnce = before }
}
