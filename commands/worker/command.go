package worker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker/attemptlog"
	"jobledger/commands/worker/child"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// Command runs a program for each job. The payload is its standard input, the environment describes the job
// (see [Environment]), and its exit code decides how the job ends (see Map). It can be used by one Worker
// only.
type Command struct {
	Path string   // a path, or a name that is searched in PATH
	Args []string // the arguments after the name

	// Carried runs what each job carries, a job of event.FormArgv, in place of Path and Args: a user who may
	// enqueue
	// such a job runs programs as this process. The worker then takes no other jobs. Env, EnvOnly and Also do
	// not apply. A job whose command cannot be run fails for good, and the worker goes on.
	Carried bool

	// May is asked before each job of Carried. With an error the job is given back, and the worker stops. nil:
	// all may be run.
	May func() error

	// Begin returns what receives the output of an attempt at a job, in place of Stdout and Stderr, and what is
	// called with its end before that is recorded: a Stop then keeps the worker from claiming another job with
	// it. With an error the job is given back, and the worker stops. nil: Stdout and Stderr receive it.
	Begin func(job projection.Job) (stdout, stderr io.Writer, ended func(commands.Command), err error)

	DB   string   // passed on as JOBLEDGER_DB, or as JOBLEDGER_URL if it is the URL of a server
	Also []string // more variables that the program gets, as NAME=VALUE

	Supervisor []string      // argv of a program that calls child.Supervise; nil: none, with weaker guarantees
	KillAfter  time.Duration // from TERM to KILL; default 10s

	// Keeper is the argv of a program that sends a heartbeat of the claim that the environment describes (see
	// [Environment]), such as {jobledger, heartbeat}; --lease and --cannot-end are added. If this worker is
	// dead or frozen, the supervising parent runs it while a process of the command lives that it may not end,
	// because it belongs to another user. nil: then such a process is left to the end of its lease.
	Keeper []string

	Env     []string // what the program may inherit, except JOBLEDGER_* and NOTIFY_SOCKET; default os.Environ()
	EnvOnly []string // limits Env to these names and BaseEnv; default nil: no limit

	// Map overrides what exit codes mean. By default 0 is succeed, 75 and 111 are release, 100 is fail-no-retry,
	// 126 and 127 mean that the command cannot be run if no attempt has run before, and all others are fail.
	Map map[int]Outcome

	Stdout, Stderr io.Writer // receive the output; nil discards it
	Prefix         bool      // put "[job] " before each line, for several slots

	ResultLimit int    // how many bytes of stdout are kept as the result; default 1 MiB
	NoResult    bool   // stdout is not the result
	Logs        string // the folder of the log files, see LogFile; "": no log files
	LogLimit    int64  // how many bytes of a stream its log file holds, head and tail; default 1 MiB
	Private     bool   // store only the sizes of the output: no log files, result, error_detail or digests

	log      *slog.Logger    // of the worker
	stopping <-chan struct{} // closed when the worker stops; nil: never

	mu        sync.Mutex
	ran       bool        // an attempt has shown that the command can be run
	unusable  *StartError // an attempt has shown that it cannot; the worker stops
	shortages int         // successive starts that failed for lack of processes, memory or files
	startAt   time.Time   // when the next start may be tried after a shortage
}

const (
	startDelay       = time.Second // the delay of a job that was not started because of a shortage
	defaultKillAfter = 10 * time.Second
	maxStartDelay    = 10 * time.Second // the longest pause after shortages; it doubles from startDelay
)

// StartError means that a command cannot be run. Code is 127 if it is not found, 126 if it cannot be
// executed.
type StartError struct {
	Code int
	Err  error

	here bool // no command can be run here
}

// Error returns the text of the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// SelfSupervisor returns the argv with which this program is its own supervising parent. Its main must call
// child.Supervise if the only argument is "supervise".
func SelfSupervisor() []string {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", "supervise"} // the same program even if its file was replaced
	}
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, "supervise"}
}

// Check searches the command, so that a typo is found before a job is claimed. Its error is a [*StartError].
func (c *Command) Check() error {
	if c.Carried {
		return nil
	}
	_, err := child.LookPath(c.Path)
	return publicStartError(err)
}

func publicStartError(err error) error {
	if e := (*child.StartError)(nil); errors.As(err, &e) {
		return &StartError{Code: e.Code, Err: e, here: e.Here}
	}
	return err
}

// Unusable returns why the command cannot be run, once an attempt has shown it; nil otherwise.
func (c *Command) Unusable() *StartError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unusable
}

// giveBack releases job and stops the worker, because of err.
func (c *Command) giveBack(job projection.Job, err error) commands.Command {
	c.cannotRun(&StartError{Code: exitCannotRun, Err: err})
	return commands.Release{Token: job.Token, Reason: reason(err)}
}

// cannotRun records why the command cannot be run, which stops the worker.
func (c *Command) cannotRun(why *StartError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unusable = why
}

// noteStart records whether a start succeeded or failed because of a shortage.
func (c *Command) noteStart(ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.shortages = 0
		return
	}
	c.startAt = time.Now().Add(min(startDelay<<min(c.shortages, 10), maxStartDelay))
	c.shortages++
}

// startPause returns how much longer to claim nothing, because of a shortage. c may be nil.
func (c *Command) startPause() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shortages == 0 {
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

func (c *Command) logLimit() int64 { return cmp.Or(c.LogLimit, attemptlog.DefaultLimit) }

func (c *Command) run(t *task) commands.Command {
	job := t.current()
	if c.Begin == nil {
		return c.runInto(t, c.output(c.Stdout, job), c.output(c.Stderr, job))
	}
	stdout, stderr, ended, err := c.Begin(job)
	if err != nil {
		return c.giveBack(job, err)
	}
	end := c.runInto(t, stdout, stderr)
	ended(end)
	return end
}

// runInto runs the command of t, with its output to these writers.
func (c *Command) runInto(t *task, stdout, stderr io.Writer) commands.Command {
	job := t.current()
	streams := c.capture(job)
	spec := child.Spec{
		Supervisor: c.Supervisor, Path: c.Path, Args: c.Args, Env: c.environment(job), Stdin: job.Payload,
		Stdout: stdout, Stderr: stderr,
		Copies:      [2]io.Writer{&streams[0], &streams[1]},
		ResultLimit: c.ResultLimit, KillAfter: c.KillAfter, Lease: t.deadlines(),
		CannotEnd: t.setCannotEnd, Keeper: c.keeper(job, t.requested),
	}
	if c.Carried {
		if end := c.carried(job, &spec); end != nil {
			return end
		}
	}
	if !job.EndBy.IsZero() {
		spec.MaxRuntime = job.EndBy.Sub(job.ClaimedAt)
	}
	process, err := t.start(spec)
	if err != nil {
		return c.notStarted(t, err, context.Cause(t.ctx))
	}
	c.noteStart(true)
	t.runs.Store(true)
	failpoint.Hit("child-runs")
	t.onExtend(func(d child.Deadlines) { _ = process.Extend(d) })
	end := c.await(t, process)
	failpoint.Hit("child-ended")
	return c.ending(t, end, c.closeStreams(job, streams[:]), context.Cause(t.ctx))
}

// stopBackstop is how much longer than KillAfter a supervising parent has to end a command.
const stopBackstop = 5 * time.Second

// await waits for the end of the process, and asks for it when the work must stop: TERM, and KILL after
// KillAfter, but KILL at once where the claim was lost, as another worker may hold the job.
func (c *Command) await(t *task, process *child.Process) child.End {
	must := t.ctx.Done()
	var kill, again <-chan time.Time
	for {
		select {
		case <-process.Done():
			return process.Wait()
		case <-must:
			must = nil
			switch cause := context.Cause(t.ctx); {
			case errors.Is(cause, ErrStopping):
				process.Stop()
			case errors.Is(cause, commands.ErrCancelled):
				process.Stop()
				kill = time.After(cmp.Or(c.KillAfter, defaultKillAfter) + stopBackstop)
			default:
				process.LeaseIsOver()
				process.Kill()
			}
		case <-kill:
			process.Kill()
		case <-t.stuckChanged:
			again = c.sayCannotEnd(t)
		case <-again:
			again = c.sayCannotEnd(t)
		}
	}
}

// sayCannotEnd logs that the command cannot be ended, if that is so, and returns when to repeat it.
func (c *Command) sayCannotEnd(t *task) <-chan time.Time {
	why := t.cannotEnd()
	if why == "" {
		return nil
	}
	if c.log != nil {
		job := t.current()
		c.log.Warn("cannot be ended", append(about(job), "attempt", job.Attempt, "why", why)...)
	}
	return time.After(time.Minute)
}

// keeper returns what keeps the lease of job, of that length, where this process cannot.
func (c *Command) keeper(job projection.Job, lease time.Duration) child.Keeper {
	if len(c.Keeper) == 0 {
		return child.Keeper{}
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !inheritable(name)
	})
	return child.Keeper{Args: append(slices.Clone(c.Keeper), "--lease", lease.String(), "--cannot-end"),
		Env: slices.Concat(env, Environment(c.DB, job), c.Also), Every: lease / 3}
}

// capture returns the writers for both streams of an attempt at job.
func (c *Command) capture(job projection.Job) (streams [2]attemptlog.Capture) {
	for i := range streams {
		if c.Private {
			continue
		}
		streams[i] = *attemptlog.New(job.Salt, c.Logs, job.ID, job.Attempt, i == 1, c.logLimit())
	}
	return streams
}

// closeStreams returns the sizes and digests of the output. Log files that could not be written do not fail
// the job.
func (c *Command) closeStreams(job projection.Job, streams []attemptlog.Capture) (o event.Output) {
	var errs [2]error
	var stdout, stderr attemptlog.Stream
	stdout, errs[0] = streams[0].Close()
	stderr, errs[1] = streams[1].Close()
	o = event.Output{
		StdoutSHA256: stdout.SHA256, StdoutBytes: stdout.Bytes, StdoutKeptSHA256: stdout.KeptSHA256,
		StderrSHA256: stderr.SHA256, StderrBytes: stderr.Bytes, StderrKeptSHA256: stderr.KeptSHA256,
	}
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
