package commands

import (
	"cmp"
	"context"
	"errors"
	"time"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Edit changes what a job that is queued or blocked may take, which workers take it, and when: all of it in
// one transaction. A field with the zero value changes nothing.
type Edit struct {
	Reschedule
	MaxAttempts int
	MaxRuntime  time.Duration
	Backoff     event.Backoff
	Requires    []string
}

func (Edit) name() string { return "edit" }

func (c Edit) check() error {
	return cmp.Or(c.Reschedule.check(), invalid(cmp.Or(check.Attempts(c.MaxAttempts),
		check.Runtime(c.MaxRuntime), check.Backoff(c.Backoff), check.Requires(c.Requires))))
}

func (c Edit) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	if j.State != event.Queued && j.State != event.Blocked {
		return journal.Fact{}, conflict(c, j)
	}
	body := &event.Edited{MaxAttempts: c.MaxAttempts, MaxRuntime: c.MaxRuntime, Backoff: c.Backoff}
	if len(c.Requires) > 0 {
		body.Requires = check.Labelled(c.Requires, j.Form)
	}
	if !journal.Changes(j, body) {
		return journal.Fact{}, errNoChange
	}
	body.Reason = c.Reason
	return journal.Fact{Job: j, Body: body}, nil
}

// applyEdit records what c changes: the job, and then when it runs.
func applyEdit(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Edit) (
	after projection.Job, err error) {
	after, err = applyTo(ctx, tx, actor, j, c)
	if c.RunAt == nil && c.Priority == nil || err != nil && !errors.Is(err, errNoChange) {
		return after, err
	}
	edited := err == nil
	after, err = applyTo(ctx, tx, actor, after, c.Reschedule)
	if edited && errors.Is(err, errNoChange) {
		return after, nil
	}
	return after, err
}
