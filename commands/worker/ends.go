package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/ledger/event"
)

// Error is a failure as the ledger records it. A Handler returns one, or an error that wraps one, as a value
// or as a pointer. If an Error wraps another, the outer one decides and the inner one fills in what the
// outer one leaves out.
//
// A RetryIn that is over already, because it was counted to a time that has passed, runs the job again at
// once; one of more than 366 days is 366 days.
type Error struct {
	Code    string        // the error_code: 1–64 printable ASCII characters without spaces; default "error"
	Detail  string        // the error_detail; default: the text of the error that the Handler returned
	RetryIn time.Duration // from the end of this attempt to the next; 0: the job's backoff; see below
	NoRetry bool          // the job fails for good
	Err     error         // the cause; nil: none
}

// Error returns the code and the text of the cause, or the detail where there is no cause.
func (e Error) Error() string {
	text := e.Detail
	if e.Err != nil {
		text = e.Err.Error()
	}
	switch {
	case e.Code == "":
		return cmp.Or(text, "failed")
	case text == "":
		return e.Code
	}
	return e.Code + ": " + text
}

// Unwrap returns the cause.
func (e Error) Unwrap() error { return e.Err }

func (e Error) failure() Error { return e }

// failureOf returns what the Errors in err say, from the outermost on; nothing if there is none.
func failureOf(err error) (all Error) {
	var next interface {
		error
		failure() Error
	}
	for errors.As(err, &next) {
		e := next.failure()
		all = Error{
			Code: cmp.Or(all.Code, e.Code), Detail: cmp.Or(all.Detail, e.Detail),
			RetryIn: cmp.Or(all.RetryIn, e.RetryIn), NoRetry: all.NoRetry || e.NoRetry,
		}
		err = e.Err
	}
	return all
}

// Permanent marks err as an error that no retry will fix: the job fails without another attempt. It is an
// Error with NoRetry.
func Permanent(err error) error { return &Error{Err: err, NoRetry: true} }

// Snooze returns an error with which a Handler releases the job, to be run again after d, at most 366 days.
// With a d of 0 or less the job waits for its backoff. A snooze is not a failure and uses up no attempt,
// except for the hundredth of a job, which is a failure.
func Snooze(d time.Duration) error { return &snoozeError{d} }

type snoozeError struct{ d time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.d) }

// Cancel returns an error with which a Handler ends the job as cancelled, for a reason, of which 1 KiB is
// kept: there is nothing left to do. It is neither a success nor a failure, and it is not retried. The jobs
// that wait for this one to succeed are cancelled too.
func Cancel(reason string) error { return &cancelError{reason} }

type cancelError struct{ reason string }

func (e *cancelError) Error() string { return "cancelled: " + e.reason }

// handlerEnd returns the command that records the end of a job whose Handler returned result and err.
func handlerEnd(t *task, result []byte, err error) commands.Command {
	job := t.current()
	cause := context.Cause(t.ctx)
	switch {
	case errors.Is(cause, commands.ErrLeaseLost), errors.Is(cause, commands.ErrCancelled):
		return reportStop(job, cause, child.End{})
	case err == nil:
		return commands.Succeed{Token: job.Token, Result: result,
			AfterMaxRuntime: errors.Is(cause, ErrMaxRuntime)}
	case errors.Is(cause, ErrNotRenewed):
		return nil // the sweeper reclaims the job
	case errors.Is(cause, ErrMaxRuntime):
		return commands.Fail{Token: job.Token, Code: event.MaxRuntime, Detail: detail(err)}
	case errors.Is(cause, ErrStopping):
		return commands.Release{Token: job.Token, Reason: ErrStopping.Error()}
	}
	if e := (*snoozeError)(nil); errors.As(err, &e) {
		return commands.Release{Token: job.Token, Reason: "snoozed", Delay: allowed(e.d), Snooze: true}
	}
	if e := (*cancelError)(nil); errors.As(err, &e) {
		return commands.Cancel{Token: job.Token, Reason: reasonText(e.reason)}
	}
	return failOf(job.Token, err)
}

// failOf returns the Fail that records err.
func failOf(token string, err error) commands.Fail {
	e := failureOf(err)
	f := commands.Fail{Token: token, Code: e.Code, Detail: commands.Detail(e.Detail), NoRetry: e.NoRetry}
	if p := (*panicError)(nil); f.Code == "" && errors.As(err, &p) {
		f.Code = "panic"
	}
	f.Code = cmp.Or(f.Code, "error")
	f.Detail = cmp.Or(f.Detail, detail(err))
	if e.RetryIn != 0 {
		f.RetryIn = new(allowed(e.RetryIn))
	}
	return f
}

// allowed returns d within the bounds that the ledger accepts, so that a bad wait does not lose the end.
func allowed(d time.Duration) time.Duration { return min(max(d, 0), commands.MaxRunTime) }

// invalidEnd returns the failure that is recorded in place of end, which err refuses: without a recorded end
// the job would run again and again. It has what the Handler said.
func invalidEnd(token string, end commands.Command, err error) commands.Fail {
	said := ""
	if f, ok := end.(commands.Fail); ok {
		said = fmt.Sprintf("\nthe handler said %.80q: %s", f.Code, f.Detail)
	}
	const most = commands.MaxErrorDetail - 1<<10 // of a detail, the end is kept
	if len(said) > most {
		said = said[:most]
	}
	return commands.Fail{Token: token, Code: "invalid_end", Detail: commands.Detail(err.Error() + said)}
}

// IsFailure reports whether a Handler that returns err fails its attempt: it does, unless err is nil or made
// by [Snooze] or [Cancel]. The ledger decides in the end: the hundredth snooze is a failure, and a job that
// was cancelled meanwhile has no other end.
func IsFailure(err error) bool {
	snooze, cancel := (*snoozeError)(nil), (*cancelError)(nil)
	return err != nil && !errors.As(err, &snooze) && !errors.As(err, &cancel)
}

// decided reports whether err says already when, or whether, the job is run again.
func decided(err error) bool {
	e := failureOf(err)
	return e.NoRetry || e.RetryIn != 0 || !IsFailure(err)
}
