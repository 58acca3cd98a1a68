package commands

import (
	"context"
	"fmt"
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
)

// decideStale returns what follows from an owner's command with a token that is not live. It is pure.
//
// A command that repeats the ending of its claim, with the same content, gives no error and no fact: it was
// answered before, and the answer was lost. Everything else is a RefusedError, with the fact of the refusal
// unless that is recorded already, or the command is a heartbeat that an orderly owner sends: see
// follow.PastClaim.EndedInOrder and decideSurvived. A fact without a body is none.
func decideStale(j projection.Job, past follow.PastClaim, c ownerCommand, at time.Time) (journal.Fact,
	error) {
	if past.Ending != nil && sameEnding(*past.Ending, past.Salt, c) {
		return journal.Fact{}, checkOwner(c, j, past.Given.Worker)
	}
	token, _ := c.credentials()
	refused := &RefusedError{Command: c.name(), Job: j.ID, Token: token}
	refused.Why, refused.Err = whyRefused(past)
	beat, ok := c.(Heartbeat)
	switch {
	case ok && refused.Err == ErrCancelled && beat.CannotEnd != "":
		return decideSurvived(j, past, beat, at), refused
	case past.Refused || ok && past.EndedInOrder():
		return journal.Fact{}, refused
	}
	body := &event.Refused{Command: c.name(), Why: refused.Why}
	if s, ok := c.(Succeed); ok && s.Result != nil {
		body.OfferedBytes = int64(len(s.Result))
		if past.Salt != nil {
			body.OfferedSHA256 = ledger.Digest(past.Salt, s.Result)
		}
	}
	f := journal.Fact{Job: j, Body: body, Token: token}
	if past.Given != nil {
		f.Worker, f.Attempt = past.Given.Worker, past.Given.Attempt
	}
	return f, refused
}

// whyRefused says why a token is not live, in words and as the sentinel that callers branch on.
func whyRefused(past follow.PastClaim) (string, error) {
	if past.Given == nil {
		return "this token was never given for it", ErrLeaseLost
	}
	if past.Ending == nil { // cannot be while the token is not live
		return "the claim was not found to end", ErrLeaseLost
	}
	who, at := past.Ending.Actor, event.FormatTime(past.Ending.At)
	switch b := past.Ending.Body.(type) {
	case *event.Reclaimed:
		return fmt.Sprintf("the lease was lost: %s reclaimed it at %s (%s)", who, at, b.Reason), ErrLeaseLost
	case *event.Cancelled:
		if past.Latest {
			return fmt.Sprintf("%s cancelled the job at %s", who, at), ErrCancelled
		}
		return "the job was cancelled and has been claimed again", ErrLeaseLost
	}
	return fmt.Sprintf("the claim has ended: %s at %s", past.Ending.Kind(), at), ErrConflict
}

// sameEnding reports whether c repeats what ended the claim, as far as the ledger still knows.
func sameEnding(ending event.Event, salt []byte, c ownerCommand) bool {
	switch b := ending.Body.(type) {
	case *event.Succeeded:
		c, ok := c.(Succeed)
		if !ok || !sameCode(b.ExitCode, c.ExitCode) || (b.ResultSHA256 == "") != (c.Result == nil) {
			return false
		}
		if salt == nil { // the job was erased: of its result, the size is left to compare
			return b.ResultBytes == int64(len(c.Result))
		}
		return c.Result == nil || b.ResultSHA256 == ledger.Digest(salt, c.Result)
	case *event.Failed:
		if c, ok := c.(Release); ok {
			return c.Snooze && b.ErrorCode == snoozedTooOften && b.ErrorDetail == c.Reason
		}
		c, ok := c.(Fail)
		return ok && b.ErrorCode == c.code() && b.ErrorDetail == c.Detail && sameCode(b.ExitCode, c.ExitCode) &&
			b.Signal == c.Signal && (b.RetryAt.IsZero() || !c.NoRetry)
	case *event.Released:
		c, ok := c.(Release)
		return ok && b.Reason == c.Reason && b.Snooze == c.Snooze
	}
	return false
}

func sameCode(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// applyStale reads what became of the token's claim, decides, and records a refusal. It returns the answer to
// c.
func applyStale(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c ownerCommand) error {
	token, _ := c.credentials()
	past, err := follow.ReadPast(ctx, tx, j, token, c.name())
	if err != nil {
		return err
	}
	f, answer := decideStale(j, past, c, tx.Now())
	if f.Body == nil {
		return answer
	}
	f.Actor = actor
	if j, err = journal.Record(ctx, tx, f); err != nil {
		return err
	}
	body, ok := f.Body.(*event.Survived)
	if !ok || !past.Waits || j.State != event.Queued || !j.RunAt.Before(body.LeaseUntil) {
		return answer
	}
	wait := &event.Rescheduled{RunAt: body.LeaseUntil, Priority: j.Priority,
		Reason: "its last command cannot be ended, and may run until then"}
	if _, err := journal.Record(ctx, tx, journal.Fact{Actor: actor, Job: j, Body: wait}); err != nil {
		return err
	}
	return answer
}
