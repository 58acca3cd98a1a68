package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// Handler does the work of one job. Its result, up to 1 MiB, is stored with the job; nil stores none. A
// result or error that cannot be recorded fails the attempt with the code invalid_end.
//
// ctx ends when the job must stop. Its cause is [commands.ErrLeaseLost], [commands.ErrCancelled],
// [ErrNotRenewed], [ErrMaxRuntime] or [ErrStopping]. An error fails the attempt, and so do a panic and
// [runtime.Goexit]; the job is retried with backoff until its attempts are used up. An [Error] says more
// about a failure; [Snooze] and [Cancel] make errors that are not failures. The stack of a panic is in the
// error_detail.
//
// Work is called from several goroutines at the same time where the Worker has several slots.
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
		return invalidEnd(t.current().Token, end, err) // the result is too large, for example
	}
	return end
}

func (h handlerRunner) work(t *task) commands.Command {
	if !time.Now().Before(t.deadlines().Term) { // frozen until now; another worker may have claimed the job
		t.cancel(ErrNotRenewed)
		return nil
	}
	job := t.current()
	result, err := safely(labelled(context.WithValue(t.ctx, taskKey{}, t), job), h.Handler, job)
	return handlerEndSafely(t, result, err)
}

// handlerEndSafely is handlerEnd for an error whose own methods may panic.
func handlerEndSafely(t *task, result []byte, err error) (end commands.Command) {
	defer func() {
		if p := recover(); p != nil {
			end = handlerEnd(t, nil, &panicError{p, debug.Stack()})
		}
	}()
	return handlerEnd(t, result, err)
}

// safely calls h and turns a panic into an error with its stack.
func safely(ctx context.Context, h Handler, job projection.Job) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &panicError{p, debug.Stack()}
		}
	}()
	return h.Work(ctx, job)
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
