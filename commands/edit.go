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

// Edit changes what a job that is queued or blocked may take, which workers take it, when, and its payload:
// all of it in one transaction. A field with the zero value changes nothing.
type Edit struct {
	Reschedule
	MaxAttempts int
	MaxRuntime  time.Duration
	Backoff     event.Backoff
	Requires    []string
	Payload     []byte // in place of the one that it has, and of the form of that; nil: unchanged
}

func (Edit) name() string { return "edit" }

func (c Edit) check() error {
	return cmp.Or(c.Reschedule.check(), invalid(cmp.Or(check.Attempts(c.MaxAttempts),
		check.Runtime(c.MaxRuntime), check.Backoff(c.Backoff), check.Requires(c.Requires),
		check.Size("payload", c.Payload))))
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

// replace is the payload of an Edit.
type replace []byte

func (replace) name() string { return "edit" }

func (c replace) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	f, wrong := journal.Replace(j, c)
	if f.Body == nil && wrong == nil {
		return f, errNoChange
	}
	return f, invalid(wrong)
}

// applyEdit records what c changes: the job, when it runs, and what it has.
func applyEdit(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Edit) (
	after projection.Job, err error) {
	if c.Payload != nil {
		err = projection.LoadBodies(ctx, tx, &j)
	}
	after = j
	for _, part := range []action{c, c.Reschedule, replace(c.Payload)} {
		if err == nil || errors.Is(err, errNoChange) {
			after, err = applyTo(ctx, tx, actor, after, part)
		}
	}
	if errors.Is(err, errNoChange) && after.Seq != j.Seq {
		return after, nil
	}
	return after, err
}
