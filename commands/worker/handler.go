package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Handler does the work of one job. Its result, up to 1 MiB, is stored with the job; nil stores none. A
// result or error that cannot be recorded fails the attempt with the code invalid_end.
//
// ctx ends when the job must stop. Its cause is [commands.ErrLeaseLost], [commands.ErrCancelled],
// [ErrNotRenewed], [ErrMaxRuntime] or [ErrStopping]. An error fails the attempt, and so do a panic and
// [runtime.Goexit]; the job is retried with backoff until its attempts are used up. Errors made by
// [Permanent] and [Snooze] are exceptions.
//
// Effects outside of the ledger happen at least once. Use job.ID to deduplicate them, and job.Token to
// distinguish its attempts.
type Handler interface {
	Work(ctx context.Context, job projection.Job) (result []byte, err error)
}

// HandlerFunc is a function that serves as a Handler.
type HandlerFunc func(ctx context.Context, job projection.Job) ([]byte, error)

// Work calls f.
func (f HandlerFunc) Work(ctx context.Context, job projection.Job) ([]byte, error) {
	return f(ctx, job)
}

// The causes with which a job's context ends, in addition to [commands.ErrLeaseLost] and
// [commands.ErrCancelled].
var (
	ErrMaxRuntime = errors.New("max runtime is over")
	ErrStopping   = errors.New("the worker is stopping")
	ErrNotRenewed = errors.New("the lease could not be renewed in time")
)

// Permanent marks err as an error that no retry will fix: the job fails without another attempt.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Snooze returns an error with which a Handler releases the job, to be run again after d, at most 366 days.
// With d 0 the job waits for its backoff. A snooze is not a failure, except for the hundredth of a job.
func Snooze(d time.Duration) error { return &snoozeError{d} }

type snoozeError struct{ d time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.d) }

// runner does the work of a task: a Handler or a Command. It returns the command that records the end, or nil
// if the claim is lost and nothing is to be recorded.
type runner interface {
	run(t *task) commands.Command
}

// handlerRunner runs a Handler in this process.
type handlerRunner struct{ Handler }

func (h handlerRunner) run(t *task) commands.Command {
	end := h.work(t)
	if end == nil {
		return nil
	}
	if err := commands.CheckCommand(end); err != nil {
		// The result is too large, for example. Without a recorded end the job would run again and again.
		return commands.Fail{Token: t.current().Token, Code: "invalid_end", Detail: detail(err)}
	}
	return end
}

func (h handlerRunner) work(t *task) commands.Command {
	if !time.Now().Before(t.deadlines().Term) { // frozen until now; another worker may have claimed the job
		t.cancel(ErrNotRenewed)
		return nil
	}
	result, err := h.workSafely(t)
	return handlerEnd(t, result, err)
}

// handlerEnd returns the command that records the end of a job whose Handler returned result and err.
func handlerEnd(t *task, result []byte, err error) commands.Command {
	job := t.current()
	cause := context.Cause(t.ctx)
	switch {
	case errors.Is(cause, commands.ErrLeaseLost), errors.Is(cause, commands.ErrCancelled):
		return reportStop(job, cause, nil, "")
	case err == nil:
		return commands.Succeed{Token: job.Token, Result: result}
	case errors.Is(cause, ErrNotRenewed):
		return nil // the sweeper reclaims the job
	case errors.Is(cause, ErrMaxRuntime):
		return commands.Fail{Token: job.Token, Code: event.MaxRuntime, Detail: detail(err)}
	case errors.Is(cause, ErrStopping):
		return commands.Release{Token: job.Token, Reason: ErrStopping.Error()}
	}
	if e := (*snoozeError)(nil); errors.As(err, &e) {
		return commands.Release{Token: job.Token, Reason: "snoozed", Delay: e.d, Snooze: true}
	}
	f := commands.Fail{Token: job.Token, Code: "error", Detail: detail(err)}
	if e := (*panicError)(nil); errors.As(err, &e) {
		f.Code = "panic"
	}
	if e := (*permanentError)(nil); errors.As(err, &e) {
		f.NoRetry = true
	}
	return f
}

// workSafely calls the Handler and turns a panic into an error with its stack.
func (h handlerRunner) workSafely(t *task) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return h.Work(t.ctx, t.current())
}

// errExited is the error of a Handler that never returned.
var errExited = errors.New("the handler ended its goroutine (runtime.Goexit)")

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.value, e.stack) }

// detail returns the text of err as an error_detail: valid UTF-8 without NUL, within the limit.
func detail(err error) string { return commands.Detail(err.Error()) }
