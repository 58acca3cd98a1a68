package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// Handler does the work of one job. Its result, up to 1 MiB, is kept with the job; nil is none. An answer that cannot be
// recorded fails the attempt with the code invalid_end.
//
// ctx ends when the job must stop: its cause is commands.ErrLeaseLost, commands.ErrCancelled, ErrNotRenewed,
// ErrMaxRuntime or ErrStopping. An error fails the attempt, and so do a panic and runtime.Goexit; Permanent and Snooze
// say otherwise. Effects outside of the ledger happen at least once: job.ID and job.Token let them be told apart.
type Handler interface {
	Work(ctx context.Context, job projection.Job) (result []byte, err error)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, job projection.Job) ([]byte, error)

// Work calls f.
func (f HandlerFunc) Work(ctx context.Context, job projection.Job) ([]byte, error) {
	return f(ctx, job)
}

// Why a job's context ended, beside commands.ErrLeaseLost and commands.ErrCancelled.
var (
	ErrMaxRuntime = errors.New("max runtime is over")
	ErrStopping   = errors.New("the worker is stopping")
	ErrNotRenewed = errors.New("the lease could not be renewed in time")
)

// Permanent marks err as one that no retry will heal: the job fails for good.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Snooze, returned as a Handler's error, gives the job back to be run d later, up to 366 days, which is no failure; with
// d 0 it waits for the usual backoff. The hundredth time it is a failure.
func Snooze(d time.Duration) error { return &snoozeError{d} }

type snoozeError struct{ d time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.d) }

// runner is what a worker runs: a Handler, or a Command. It returns the command that records the end; nil records
// nothing, because the claim is lost.
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
	if err := commands.CheckCommand(end); err != nil { // a result too large, say: not recorded, it would be done again and again
		return commands.Fail{Token: t.current().Token, Code: "invalid_end", Detail: detail(err)}
	}
	return end
}

func (h handlerRunner) work(t *task) commands.Command {
	if !time.Now().Before(t.deadlines().Term) { // this process was frozen, say, and the job may be another's by now
		t.cancel(ErrNotRenewed)
		return nil
	}
	result, err := h.workSafely(t)
	return handlerEnd(t, result, err)
}

// handlerEnd says how a job ends of which a Handler has said this.
func handlerEnd(t *task, result []byte, err error) commands.Command {
	job := t.current()
	cause := context.Cause(t.ctx)
	switch {
	case errors.Is(cause, commands.ErrLeaseLost), errors.Is(cause, commands.ErrCancelled):
		return nil
	case err == nil:
		return commands.Succeed{Token: job.Token, Result: result}
	case errors.Is(cause, ErrNotRenewed):
		return nil // the sweeper gives it on
	case errors.Is(cause, ErrMaxRuntime):
		return commands.Fail{Token: job.Token, Code: ledger.MaxRuntime, Detail: detail(err)}
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

// workSafely makes a panic an error with its stack.
func (h handlerRunner) workSafely(t *task) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return h.Work(t.ctx, t.current())
}

// errExited is the end of a job whose Handler never returned.
var errExited = errors.New("the handler ended its goroutine (runtime.Goexit)")

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.value, e.stack) }

// detail is err as an error_detail: valid UTF-8 without NUL, within the limit.
func detail(err error) string { return commands.Detail(err.Error()) }
