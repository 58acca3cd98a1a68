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

// Spec says which command to run for one claimed job, with what, and for how long.
type Spec struct {
	Supervisor []string // argv of a program that calls Supervise; empty: no supervising parent, weaker promises

	Path string   // a path, or a name that is looked up in the worker's own PATH
	Args []string // the arguments after the name
	Env  []string // all of the child's environment; nothing is added
	Dir  string   // where it runs; default: where the worker runs

	Stdin          []byte       // its standard input, to the byte
	Stdout, Stderr io.Writer    // where its output goes as it comes; nil: nowhere. A Write that blocks holds the child up
	Copies         [2]io.Writer // where stdout and stderr go as well, and first; nil: nowhere. Their errors are not told
	ResultLimit    int          // how many bytes of stdout are kept; default 1 MiB

	KillAfter  time.Duration // how long a child may go on after TERM; default 10 s
	MaxRuntime time.Duration // TERM when it has run for so long, KILL KillAfter later; 0: no end
	Lease      Deadlines
}

// Deadlines are the instants at which a child is sent TERM and KILL because its lease could not be renewed.
// They are instants and not durations, so that a worker that freezes between working one out and sending it
// does not stretch its lease: take the time before the lease is asked for, and add to that. Only Go's monotonic
// reading counts, a change of the wall clock does not. A zero time means never.
type Deadlines struct {
	Term, Kill time.Time
}

// Cause says who ended a child: we, and why, or nobody but itself.
type Cause string

const (
	CauseNone       Cause = ""            // it came to its end, or a stranger ended it
	CauseMaxRuntime Cause = "max_runtime" // it ran for MaxRuntime
	CauseLease      Cause = "lease"       // its lease was not extended in time
	CauseStop       Cause = "stop"        // Stop was called
	CauseKill       Cause = "kill"        // Kill was called
)

// End is how a child ended. Exactly one of ExitCode, Signal and Err is set.
type End struct {
	ExitCode *int   // it exited; `exit 137` is 137 and no signal
	Signal   string // the signal that it died of, such as "SIGKILL"
	Err      error  // how it ended is not known: its supervising parent was killed, or it cannot be killed
	Cause    Cause  // the first reason we had to end it, if we signalled it at all
	Left     int    // processes of the job that are still there, because they could not be killed

	Stdout          []byte // the first ResultLimit bytes
	StdoutSize      int64  // how many there were
	StdoutTruncated bool   // there were more than Stdout holds
	StderrTail      []byte // the last 8 KiB
}

const (
	defaultResultLimit = 1 << 20
	defaultKillAfter   = 10 * time.Second
	stderrTail         = 8 << 10
)

// ErrLate says that a command was not started because its lease was all but over: this process was frozen, say.
var ErrLate = errors.New("its lease ran out before it could begin")

// StartError says that a command cannot be run, in the way a shell says it.
type StartError struct {
	Path string
	Code int // 127: there is no such command; 126: there is, but it cannot be run
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("run %s: %v", e.Path, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// LookPath finds the file that a command's name stands for. Its errors are *StartError.
func LookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err // without the name, which StartError says
	}
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, exec.ErrDot) || errors.Is(err, fs.ErrNotExist) {
		code = 127
	}
	return "", &StartError{Path: name, Code: code, Err: err}
}

// withDefaults replaces the zero values that stand for something else.
func (s Spec) withDefaults() Spec {
	s.ResultLimit = cmp.Or(s.ResultLimit, defaultResultLimit)
	s.KillAfter = cmp.Or(s.KillAfter, defaultKillAfter)
	return s
}
