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
	"jobledger/projection/follow"
)

// ReportStop records that the work on a claim that was cancelled or reclaimed has ended. Until then, or
// until the end of its lease, a Retry of the cancelled job waits. Repeating it changes nothing.
type ReportStop struct {
	Token    string
	ExitCode *int // nil: the command was killed, or there was none
	Signal   string
	Cost     event.Cost // as in Succeed
}

func (ReportStop) name() string { return "report_stop" }

func (c ReportStop) check() error {
	return cmp.Or(checkToken(c.Token), CheckText("signal", c.Signal, MaxKey), invalid(check.Cost(c.Cost)))
}

// decide is not used: what follows depends on the events of the job, see decideStop.
func (c ReportStop) decide(j projection.Job, _ time.Time) (journal.Fact, error) {
	return journal.Fact{}, &ConflictError{c.name(), j.ID, "the events of the claim are needed"}
}

// decideStop returns what follows from c, in order: that the command has ended and, where the job was
// retried and waits for just that, that it runs now. It is pure.
func decideStop(j projection.Job, past follow.PastClaim, c ReportStop, at time.Time) ([]journal.Fact, error) {
	why := ""
	switch {
	case past.Given == nil:
		return nil, &ConflictError{c.name(), j.ID, "this token was never given for it"}
	case past.Stopped:
		return nil, errNoChange
	case past.Ending == nil:
	case past.Ending.Kind() == event.KindCancelled:
		why = event.WhyCancelled
	case past.Ending.Kind() == event.KindReclaimed:
		why = event.WhyReclaimed
	}
	if why == "" {
		return nil, &ConflictError{c.name(), j.ID, "the claim was neither cancelled nor reclaimed"}
	}
	stopped := &event.Stopped{ExitCode: c.ExitCode, Signal: c.Signal, Why: why, Cost: c.Cost}
	facts := []journal.Fact{{Job: j, Body: stopped, Token: c.Token,
		Worker: past.Given.Worker, Attempt: past.Given.Attempt}}
	if past.Latest && past.Waits && j.State == event.Queued && j.RunAt.After(at) && j.RunAt.Equal(past.Until) {
		body := &event.Rescheduled{RunAt: at, Priority: j.Priority, Reason: "its last command has ended"}
		facts = append(facts, journal.Fact{Job: j, Body: body})
	}
	return facts, nil
}

// applyStop reads what became of the token's claim, decides, and records what follows.
func applyStop(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c ReportStop) (
	projection.Job, error) {
	past, err := follow.ReadPast(ctx, tx, j, c.Token, c.name())
	if err != nil {
		return j, err
	}
	facts, err := decideStop(j, past, c, tx.Now())
	if err != nil {
		return j, err
	}
	for _, f := range facts {
		f.Actor, f.Job = actor, j
		if j, err = journal.Record(ctx, tx, f); err != nil {
			return j, err
		}
	}
	return j, nil
}

// Live returns the tokens of the claims of these jobs that are live.
func (s *Service) Live(ctx context.Context, jobs []projection.Job) (live map[string]bool, err error) {
	err = s.peek(ctx, func(tx *ledger.Tx) error {
		live, err = projection.LiveTokens(ctx, tx, jobs)
		return err
	})
	return live, err
}

// applyCancel cancels j. If the owner of its claim asks, the end of the work is recorded too, even if the
// job was cancelled before.
func applyCancel(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Cancel) (
	projection.Job, error) {
	after, err := applyTo(ctx, tx, actor, j, c)
	switch {
	case c.Token == "":
		return after, err
	case errors.Is(err, errNoChange):
		after = j
	case err != nil:
		return after, err
	}
	return applyStop(ctx, tx, actor, after, ReportStop{Token: c.Token})
}
