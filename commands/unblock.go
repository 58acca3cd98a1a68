package commands

import (
	"context"
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
)

// Unblock lifts the hold of a blocked job, which is queued if it waits for no other job.
type Unblock struct {
	Reason string

	held, waits bool // it has a hold, and waits for other jobs. Read from the ledger by applyUnblock
}

func (Unblock) name() string { return "unblock" }

func (c Unblock) check() error { return CheckText("reason", c.Reason, MaxReason) }

func (c Unblock) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	if j.State != event.Blocked {
		return journal.Fact{}, conflict(c, j)
	}
	if !c.held {
		return journal.Fact{}, &ConflictError{c.name(), j.ID, "it has no hold; it waits for other jobs"}
	}
	return journal.Fact{Job: j, Body: &event.Unblocked{Hold: true, Blocked: c.waits, Reason: c.Reason}}, nil
}

func applyUnblock(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Unblock) (
	projection.Job, error) {
	late, err := deps.LateOf(ctx, tx, j.N)
	if err == nil {
		err = journal.DelayByMet(ctx, tx, j.N, late.Met())
	}
	if err == nil {
		_, err = late.RemoveMet(tx) // by the events it waits for those no more
	}
	if err != nil {
		return j, err
	}
	edges, err := deps.Of(ctx, tx, j.N, 2) // a hold comes first
	if err != nil {
		return j, err
	}
	c.held = len(edges) > 0 && edges[0].Parent == 0
	c.waits = len(edges) > 1
	return applyTo(ctx, tx, actor, j, c)
}
