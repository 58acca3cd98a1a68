package commands

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection"
)

// Past is what became of the claim of a token that is not live any more, read from the job's events.
type Past struct {
	Claim   *ledger.Event // where that token was given; nil: never to this job
	Ending  *ledger.Event // how that claim ended; nil while it has not
	Latest  bool          // no later claim was made
	Refused bool          // this token and command have been refused and recorded before
	Salt    []byte        // of the job's digests; nil once erased
}

// DecideStale says what happens when an owner's command comes with a token that is not live. It is pure.
//
// The same command with the same content as the claim's own ending gives nil and no body: it was answered before,
// and the answer was lost. Everything else is a RefusedError, with the body of the refused event unless that has
// been recorded before.
func DecideStale(j projection.Job, past Past, c Command) ([]ledger.Body, error) {
	token, owner, _ := credentials(c)
	refused := &RefusedError{Command: c.name(), Job: j.ID, Token: token, Err: ErrLeaseLost}
	switch {
	case past.Claim == nil:
		refused.Why = "this token was never given for it"
	case past.Ending == nil:
		refused.Why = "the claim was not found to end" // cannot be while the token is not live
	case past.Ending.Kind() == ledger.KindReclaimed:
		refused.Why = fmt.Sprintf("the lease was lost: %s reclaimed it at %s (%s)", past.Ending.Actor,
			ledger.FormatTime(past.Ending.At), past.Ending.Body.(*ledger.Reclaimed).Reason)
	case past.Ending.Kind() == ledger.KindCancelled && past.Latest:
		refused.Why, refused.Err = fmt.Sprintf("%s cancelled the job at %s", past.Ending.Actor, ledger.FormatTime(past.Ending.At)), ErrCancelled
	case past.Ending.Kind() == ledger.KindCancelled:
		refused.Why = "the job was cancelled and has been claimed anew"
	case sameEnding(*past.Ending, past.Salt, c):
		return nil, checkOwner(c, j, owner, past.Claim.Worker)
	default:
		refused.Why, refused.Err = fmt.Sprintf("the claim has ended: %s at %s", past.Ending.Kind(), ledger.FormatTime(past.Ending.At)), ErrConflict
	}
	if past.Refused {
		return nil, refused
	}
	b := &ledger.Refused{Command: c.name(), Why: refused.Why}
	if s, ok := c.(Succeed); ok && s.Result != nil {
		b.OfferedBytes = int64(len(s.Result))
		if past.Salt != nil {
			b.OfferedSHA256 = ledger.Digest(past.Salt, s.Result)
		}
	}
	return []ledger.Body{b}, refused
}

// sameEnding reports whether c is what ended the claim, sent once more.
func sameEnding(ending ledger.Event, salt []byte, c Command) bool {
	switch b := ending.Body.(type) {
	case *ledger.Succeeded:
		c, ok := c.(Succeed)
		if !ok || !sameCode(b.ExitCode, c.ExitCode) || (b.ResultSHA256 == "") != (c.Result == nil) {
			return false
		}
		return c.Result == nil || salt != nil && b.ResultSHA256 == ledger.Digest(salt, c.Result)
	case *ledger.Failed:
		if c, ok := c.(Release); ok {
			return c.Snooze && b.ErrorCode == "snoozed_too_often" && b.ErrorDetail == c.Reason
		}
		c, ok := c.(Fail)
		code := c.Code
		if code == "" {
			code = "failed"
		}
		return ok && b.ErrorCode == code && b.ErrorDetail == c.Detail && sameCode(b.ExitCode, c.ExitCode) && b.Signal == c.Signal &&
			(b.RetryAt.IsZero() || !c.NoRetry)
	case *ledger.Released:
		c, ok := c.(Release)
		return ok && b.Reason == c.Reason && b.Snooze == c.Snooze
	}
	return false
}

func sameCode(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// answerLate looks up what became of the token's claim, decides, and records a refusal.
func answerLate(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) error {
	token, _, _ := credentials(c)
	past, err := pastOf(ctx, tx, j, token, c.name())
	if err != nil {
		return err
	}
	bodies, refusal := DecideStale(j, past, c)
	for _, body := range bodies {
		f := fact{actor: actor, job: j, body: body, token: token}
		if past.Claim != nil {
			f.worker, f.number = past.Claim.Worker, past.Claim.Attempt
		}
		if _, err := record(ctx, tx, f); err != nil {
			return err
		}
	}
	return refusal
}

// pastKinds are all but the heartbeats, of which there may be many.
var pastKinds = []ledger.Kind{ledger.KindClaimed, ledger.KindSucceeded, ledger.KindFailed, ledger.KindReleased,
	ledger.KindReclaimed, ledger.KindCancelled, ledger.KindRefused}

func pastOf(ctx context.Context, tx *ledger.Tx, j projection.Job, token, command string) (past Past, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: pastKinds}) {
		if err != nil {
			return past, err
		}
		switch {
		case e.Kind() == ledger.KindClaimed && e.Token == token:
			past.Claim, past.Latest = &e, true
		case e.Kind() == ledger.KindClaimed:
			past.Latest = false
		case e.Kind() == ledger.KindRefused && e.Token == token:
			past.Refused = past.Refused || e.Body.(*ledger.Refused).Command == command
		case e.Kind().EndsClaim() && past.Claim != nil && e.Attempt == past.Claim.Attempt:
			past.Ending = &e
		}
	}
	salt, _, _, err := tx.Body(ctx, j.N)
	past.Salt = salt
	return past, err
}
