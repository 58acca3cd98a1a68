package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// Command runs a program for each job: the payload is its standard input, the environment says which job it is,
// and its exit code says how it ended.
type Command struct {
	Path string   // a path, or a name to look up in PATH
	Args []string // after the name
	DB   string   // JOBLEDGER_DB of the child

	Supervisor  []string      // argv of a program that calls Supervise; nil: none, and weaker promises
	KillAfter   time.Duration // from TERM to KILL; default 10s
	ResultLimit int           // how many bytes of its standard output are the result; default 1 MiB
	Env         []string      // what the child inherits; default os.Environ without JOBLEDGER_*

	Stdout, Stderr io.Writer // where its output goes; nil: nowhere
	Prefix         bool      // put "[job] " before each line, for several slots

	mu       sync.Mutex
	finished bool        // some attempt has come to an end of its own
	unusable *StartError // the command cannot run: the worker stops
}

// StartError says that a command cannot be run: Code is 127 if it is not found, 126 if it cannot be executed.
type StartError struct {
	Code int
	Err  error
}

// Error says why.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// The exit codes of a child that mean more than failure, after sysexits.h, qmail and the shells.
const (
	exitTempFail  = 75
	exitSoftFail  = 111
	exitPermanent = 100
	exitCannotRun = 126
	exitNotFound  = 127
)

// SelfSupervisor is the argv with which this program is its own supervising parent, if its main calls Supervise for
// the argument "supervise".
func SelfSupervisor() []string {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", "supervise"} // the same program, even if its file has been replaced
	}
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, "supervise"}
}

// Check looks the command up, so that a typo is said before anything is claimed. Its error is a *StartError.
func (c *Command) Check() error {
	_, err := lookPath(c.Path)
	return publicStartError(err)
}

func publicStartError(err error) error {
	if e := (*startError)(nil); errors.As(err, &e) {
		return &StartError{Code: e.Code, Err: e}
	}
	return err
}

// Unusable returns why the command cannot run, once an attempt has shown it; nil otherwise.
func (c *Command) Unusable() *StartError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unusable
}

func (c *Command) run(t *task) commands.Command {
	job := t.current()
	spec := childSpec{Supervisor: c.Supervisor, Path: c.Path, Args: c.Args, Env: c.environment(job), Stdin: job.Payload,
		Stdout: c.output(c.Stdout, job), Stderr: c.output(c.Stderr, job), ResultLimit: c.ResultLimit, KillAfter: c.KillAfter, Lease: t.deadlines()}
	if !job.EndBy.IsZero() {
		spec.MaxRuntime = job.EndBy.Sub(job.ClaimedAt)
	}
	child, err := startChild(t.ctx, spec)
	if err != nil {
		return c.notStarted(job, err, context.Cause(t.ctx))
	}
	t.onExtend(func(d leaseDeadlines) { _ = child.Extend(d) })
	select {
	case <-child.Done():
	case <-t.ctx.Done():
		if errors.Is(context.Cause(t.ctx), ErrStopping) {
			child.Stop()
		} else {
			child.Kill() // lost or cancelled: it must not do anything more
		}
	}
	end := child.Wait()
	return c.ending(t.current(), end, context.Cause(t.ctx))
}

// notStarted: no process ran. A command that cannot run at all gives the job back and stops the worker.
func (c *Command) notStarted(job projection.Job, err, cause error) commands.Command {
	if isLost(cause) {
		return nil
	}
	release := commands.Release{Token: job.Token, Reason: commands.Detail(err.Error())}
	if e := (*StartError)(nil); errors.As(publicStartError(err), &e) {
		c.mu.Lock()
		c.unusable = e
		c.mu.Unlock()
		return release
	}
	release.Delay = time.Second // out of processes or memory just now
	return release
}

// ending says how an attempt ended: the exit map.
func (c *Command) ending(job projection.Job, end childEnd, cause error) commands.Command {
	c.mu.Lock()
	first := !c.finished
	c.finished = c.finished || end.ExitCode != nil && *end.ExitCode != exitCannotRun && *end.ExitCode != exitNotFound
	c.mu.Unlock()
	tail := commands.Detail(string(end.StderrTail))
	fail := commands.Fail{Token: job.Token, Detail: tail, ExitCode: end.ExitCode, Signal: end.Signal}
	switch {
	case isLost(cause), end.Cause == causeLease:
		return nil // the job is somebody else's, or the sweeper will give it on
	case end.Cause == causeMaxRuntime:
		fail.Code = ledger.MaxRuntime
		return fail
	case end.ExitCode != nil && *end.ExitCode == 0:
		return commands.Succeed{Token: job.Token, Result: result(end), ExitCode: end.ExitCode}
	case errors.Is(cause, ErrStopping):
		return commands.Release{Token: job.Token, Reason: ErrStopping.Error()}
	case end.Err != nil:
		fail.Code, fail.Detail = "lost_child", commands.Detail(end.Err.Error()+"\n"+tail)
		return fail
	case end.Signal != "":
		fail.Code = "signal"
		return fail
	}
	switch code := *end.ExitCode; code {
	case exitTempFail, exitSoftFail:
		return commands.Release{Token: job.Token, Reason: fmt.Sprintf("exit code %d", code), Snooze: true}
	case exitPermanent:
		fail.Code, fail.NoRetry = "exit_code", true
	case exitCannotRun, exitNotFound:
		fail.Code = "exit_code"
		if first {
			c.mu.Lock()
			c.unusable = &StartError{Code: code, Err: fmt.Errorf("%s: exit code %d from its first job: %s", c.Path, code, strings.TrimSpace(tail))}
			c.mu.Unlock()
			return commands.Release{Token: job.Token, Reason: fmt.Sprintf("exit code %d", code)}
		}
	default:
		fail.Code = "exit_code"
	}
	return fail
}

// isLost reports whether a context ended because the claim is over: then nothing is recorded.
func isLost(cause error) bool {
	return errors.Is(cause, commands.ErrLeaseLost) || errors.Is(cause, commands.ErrCancelled) || errors.Is(cause, ErrNotRenewed)
}

// result is what the child printed; nil if it printed nothing.
func result(end childEnd) []byte {
	if len(end.Stdout) == 0 {
		return nil
	}
	return end.Stdout
}

func (c *Command) output(w io.Writer, job projection.Job) io.Writer {
	if w == nil || !c.Prefix {
		return w
	}
	return newPrefixWriter(w, "["+string(job.ID)+"] ")
}

// environment is what the child gets: what the worker has, without anything of another job, and this job.
func (c *Command) environment(job projection.Job) []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "JOBLEDGER_") })
	return append(env,
		"JOBLEDGER_DB="+c.DB,
		"JOBLEDGER_JOB="+string(job.ID),
		"JOBLEDGER_TOKEN="+job.Token,
		"JOBLEDGER_WORKER="+job.Worker.Name,
		"JOBLEDGER_QUEUE="+job.Queue,
		"JOBLEDGER_KEY="+job.Key,
		"JOBLEDGER_ATTEMPT="+strconv.Itoa(job.Attempt),
		"JOBLEDGER_MAX_ATTEMPTS="+strconv.Itoa(job.MaxAttempts),
		"JOBLEDGER_LEASE_UNTIL="+ledger.FormatTime(job.LeaseUntil))
}
