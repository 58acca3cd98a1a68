package child

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"time"
)

// Spec describes which command to run, with what, and for how long.
type Spec struct {
	Supervisor []string // argv of a program that calls Supervise; empty: none, with weaker guarantees

	Path string   // a path, or a name that is searched in this process's own PATH
	Name string   // what the command sees as its own name, argv[0]; default: Path
	Args []string // the arguments after the name
	Env  []string // all of the command's environment; nothing is added
	Dir  string   // the working directory; default: that of this process

	// the permissions that its files do not get; nil: those of the supervising parent. Without one, it has no
	// effect
	Umask *int

	Stdin []byte // the standard input, passed on unchanged

	// Stdout and Stderr receive the output as it comes; nil discards it. A Write that blocks blocks the command.
	// One that fails is the last. A Flush() error method is called at the end.
	Stdout, Stderr io.Writer

	Copies      [2]io.Writer // receive stdout and stderr too, and first; nil: no copy. Errors are ignored
	ResultLimit int          // how many bytes of stdout are kept; default 1 MiB

	KillAfter  time.Duration // from TERM to KILL; default 10 s
	MaxRuntime time.Duration // TERM after this time, KILL another KillAfter later; default 0: no limit
	Lease      Deadlines     // replaced by Process.Extend

	// CannotEnd is called when the command should be ended, but one of its processes may not be signalled, such
	// as one that sudo made root's. It gets the name of the process and the reason, and "" once no such process
	// is left. Until that process is gone, the command has not ended. It must not block. nil: nothing is called
	CannotEnd func(why string)
	Keeper    Keeper // keeps the lease of such a command; the zero Keeper: nothing does
}

// Keeper is a program that the supervising parent runs while a process lives that it may not signal, and the
// worker, which would keep the lease, is dead or frozen.
type Keeper struct {
	Args  []string // argv. What may not be signalled, and why, is added as the last argument
	Env   []string // all of its environment
	Every time.Duration
}

// Deadlines are the times at which a command is sent TERM and KILL because its lease was not renewed. A zero
// time means never.
//
// They are times and not durations, so that a worker that freezes between computing and sending one does not
// prolong its lease: take the time before the lease is requested, and add to that. Only Go's monotonic
// reading counts, so a change of the wall clock has no effect.
type Deadlines struct {
	Term, Kill time.Time
}

// Cause is why a command was ended by this package.
type Cause string

// The causes of an end.
const (
	CauseNone       Cause = ""            // the command exited, or was ended by another process
	CauseMaxRuntime Cause = "max_runtime" // it ran for MaxRuntime
	CauseLease      Cause = "lease"       // its lease was not extended in time
	CauseStop       Cause = "stop"        // Stop was called
	CauseKill       Cause = "kill"        // Kill was called
)

// End is how a command ended. Exactly one of ExitCode, Signal and Err is set.
type End struct {
	ExitCode *int   // it exited; `exit 137` is 137 and not a signal
	Signal   string // the signal that ended it, such as "SIGKILL"
	Err      error  // its status is unknown: its supervising parent was killed, or it cannot be killed
	Cause    Cause  // the first reason to end it, if it was signalled at all
	Left     int    // processes of the command that KILL has not ended yet, because the kernel holds them

	Stdout          []byte // the first ResultLimit bytes
	StdoutSize      int64  // how many bytes were written
	StdoutTruncated bool   // Stdout does not hold all of them
	StderrTail      []byte // the last 8 KiB

	Cost Cost
}

// Cost is what the processes of a command used. On Linux these are all processes that have ended, elsewhere
// the command and what it waited for. A number that the killed supervising parent did not report is 0.
type Cost struct {
	CPUUser, CPUSystem time.Duration
	// the most memory in bytes that one of them had; 0: no more than the supervising parent, from which the
	// system counts
	MaxRSS int64
}

const (
	defaultResultLimit = 1 << 20
	defaultKillAfter   = 10 * time.Second
	stderrTail         = 8 << 10
)

// ErrLate means that a command was not started because its lease had all but expired, which happens when this
// process was frozen.
var ErrLate = errors.New("its lease ran out before it could begin")

// StartError means that a command cannot be run, now or later. Code is what a shell would exit with.
type StartError struct {
	Path string
	Code int // 127: there is no such command; 126: there is, but it cannot be run
	Err  error

	Here bool // no command can be run here: the supervising parent cannot be started
}

// Error returns the path and the cause.
func (e *StartError) Error() string { return fmt.Sprintf("run %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// LookPath finds the file of a command as a shell does. Its error is a [*StartError]. On a system that is no
// Unix, where commands are not run, it always returns one, with code 126.
func LookPath(name string) (string, error) {
	if err := supported(); err != nil {
		return "", &StartError{Path: name, Code: 126, Err: err}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err // without the name, which StartError adds
	}
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return "", &StartError{Path: name, Code: code, Err: err}
}

// withDefaults replaces the zero values that have a default.
func (s Spec) withDefaults() Spec {
	s.ResultLimit = cmp.Or(s.ResultLimit, defaultResultLimit)
	s.KillAfter = cmp.Or(s.KillAfter, defaultKillAfter)
	return s
}
