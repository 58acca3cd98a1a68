package worker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// Command runs a program for each job: the payload is its standard input, the environment says which job it
// is, and its exit code says how it ended.
type Command struct {
	Path string   // a path, or a name to look up in PATH
	Args []string // after the name
	DB   string   // JOBLEDGER_DB of the child

	Supervisor []string        // argv of a program that calls Supervise; nil: none, and weaker promises
	KillAfter  time.Duration   // from TERM to KILL; default 10s
	Env        []string        // what the child may inherit; default os.Environ. JOBLEDGER_* and NOTIFY_SOCKET never are
	EnvOnly    []string        // of that it inherits what is named here, and BaseEnv; default all
	Map        map[int]Outcome // what exit codes mean, where that is not what they mean by themselves

	Stdout, Stderr io.Writer // where its output goes; nil: nowhere
	Prefix         bool      // put "[job] " before each line, for several slots
	ResultLimit    int       // how many bytes of its standard output are the result; default 1 MiB
	NoResult       bool      // its standard output is not the result
	Logs           string    // the folder for its output, see LogFile; "": no files
	LogLimit       int64     // how many bytes of each stream of an attempt such a file holds, head and tail; default 1 MiB
	Private        bool      // keep nothing of its output, neither files, result, error_detail nor digests: only the sizes

	log      *slog.Logger    // of the worker
	stopping <-chan struct{} // closed when the worker begins to stop; nil: it never does

	mu       sync.Mutex
	ran      bool        // some attempt has shown that the command can be run
	unusable *StartError // the command cannot run: the worker stops
	short    int         // attempts in a row that this machine was short of something to start
	startAt  time.Time   // after which the next one may try
}

const (
	startDelay    = time.Second      // how long a job waits for this machine to have processes, memory or files again
	maxStartDelay = 10 * time.Second // how long the worker does, which waits longer each time
)

// StartError says that a command cannot be run: Code is 127 if it is not found, 126 if it cannot be executed.
type StartError struct {
	Code int
	Err  error
}

// Error says why.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// SelfSupervisor is the argv with which this program is its own supervising parent, if its main calls
// Supervise for the argument "supervise".
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
	_, err := child.LookPath(c.Path)
	return publicStartError(err)
}

func publicStartError(err error) error {
	if e := (*child.StartError)(nil); errors.As(err, &e) {
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

// cannotRun notes why, which stops the worker.
func (c *Command) cannotRun(why *StartError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unusable = why
}

// started notes whether this machine had what it takes to start an attempt.
func (c *Command) started(ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.short = 0
		return
	}
	c.startAt = time.Now().Add(min(startDelay<<min(c.short, 10), maxStartDelay))
	c.short++
}

// startPause is how long to claim nothing, because it could not be started.
func (c *Command) startPause() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.short == 0 {
		return 0
	}
	return max(time.Until(c.startAt), 0)
}

func (c *Command) isStopping() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

func (c *Command) logLimit() int64 { return cmp.Or(c.LogLimit, defaultLogLimit) }

func (c *Command) run(t *task) commands.Command {
	job := t.current()
	streams := c.capture(job)
	spec := child.Spec{Supervisor: c.Supervisor, Path: c.Path, Args: c.Args, Env: c.environment(job), Stdin: job.Payload,
		Stdout: c.output(c.Stdout, job), Stderr: c.output(c.Stderr, job), Copies: [2]io.Writer{&streams[0], &streams[1]},
		ResultLimit: c.ResultLimit, KillAfter: c.KillAfter, Lease: t.deadlines()}
	if !job.EndBy.IsZero() {
		spec.MaxRuntime = job.EndBy.Sub(job.ClaimedAt)
	}
	process, err := t.start(spec)
	if err != nil {
		return c.notStarted(job, err, context.Cause(t.ctx))
	}
	c.started(true)
	failpoint.Hit("child-runs")
	t.onExtend(func(d child.Deadlines) { _ = process.Extend(d) })
	select {
	case <-process.Done():
	case <-t.ctx.Done():
		if errors.Is(context.Cause(t.ctx), ErrStopping) {
			process.Stop()
		} else {
			process.Kill() // lost or cancelled: it must not do anything more
		}
	}
	end := process.Wait()
	failpoint.Hit("child-ended")
	return c.ending(t.current(), end, c.wrote(job, streams[:]), context.Cause(t.ctx))
}

// wrote closes what took the output and says what it was. That it could not be kept costs the job nothing.
func (c *Command) wrote(job projection.Job, streams []captured) (o ledger.Output) {
	var errs [2]error
	o.StdoutSHA256, o.StdoutBytes, errs[0] = streams[0].close()
	o.StderrSHA256, o.StderrBytes, errs[1] = streams[1].close()
	if err := cmp.Or(errs[0], errs[1]); err != nil && c.log != nil {
		c.log.Warn("output not kept", "job", job.ID, "attempt", job.Attempt, "error", err)
	}
	return o
}

func (c *Command) output(w io.Writer, job projection.Job) io.Writer {
	if w == nil || !c.Prefix {
		return w
	}
	return child.NewPrefixWriter(w, "["+string(job.ID)+"] ")
}
