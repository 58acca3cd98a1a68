//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// controlFD is where a supervising parent finds its worker. 0, 1 and 2 are those of the command.
const controlFD = 3

// killPatience bounds how long an end waits for processes that KILL does not end at once: those that hang in
// the kernel, and those of another user.
const killPatience = 5 * time.Second

// Supervise makes this process the supervising parent of one command: it takes the command from the worker that
// started it, runs it, holds its deadlines, and returns when the command and all that it started are gone. A program
// that runs workers calls it, before anything else, when started with the arguments that it gave its workers for
// this purpose.
//
// The process is in a session of its own, so that what stops, interrupts or kills the worker does not reach it. It
// ends the command at once when the worker is gone, and in time when the worker is frozen.
//
// On Linux, that covers every process that the command has started, in whatever group or session it is by now, as
// long as this process is allowed to signal it, and the command itself also where this process is killed. Elsewhere,
// and on a Linux without /proc, it covers the command's process group.
func Supervise() error {
	unix.CloseOnExec(controlFD)
	if _, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return errors.New("worker: a supervising parent is started by a worker, not by hand")
	}
	_ = unix.SetNonblock(controlFD, true)
	// Whoever ends all processes of a service at once still needs this one, to end the command in its own time.
	// Signals are caught and not ignored, because the command would inherit that.
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	s := &supervisor{
		worker: newConn(os.NewFile(controlFD, "worker")),
		files:  []uintptr{0, 1, 2},
		adopts: adoptOrphans(),
	}
	s.run()
	return nil
}

// supervisor runs one command. It is a process of its own, or, with weaker promises, a goroutine of the worker.
type supervisor struct {
	worker *conn
	files  []uintptr // the command's stdin, stdout and stderr
	adopts bool      // orphans come to this process, so that all descendants of the command are descendants of it

	pid    int
	exited chan syscall.WaitStatus // of the command
	gone   chan struct{}           // closed when nothing is left that could be waited for
	done   chan struct{}           // closed when run returns

	mu     sync.Mutex // held while reaping and while signalling the group: a number that is reaped may be another's
	reaped bool       // the command is; its group is not ours to signal any more
}

// run takes one command from the worker and sees it through.
func (s *supervisor) run() {
	defer s.worker.close()
	var cmd command
	if err := s.worker.receive(&cmd); err != nil {
		return // the worker is gone before it said what to run
	}
	s.exited, s.gone, s.done = make(chan syscall.WaitStatus, 1), make(chan struct{}), make(chan struct{})
	defer close(s.done)
	answer := make(chan started)
	begun := clock()
	if cmd.Lease.Term.passed(begun) { // its job may be another's by now
		_ = s.worker.send(started{Late: true})
		return
	}
	go s.hold(cmd, answer)
	a := <-answer
	if _ = s.worker.send(a); a.Errno != 0 {
		return
	}
	s.pid = a.Pid
	due := schedule{killAfter: cmd.KillAfter, lease: cmd.Lease}
	if cmd.MaxRuntime > 0 {
		due.runtime = begun.add(cmd.MaxRuntime)
	}
	status := s.watch(&due)
	left := s.endAll()
	if status == nil {
		select {
		case st := <-s.exited:
			status = &st
		default:
		}
	}
	_ = s.worker.send(ended{Status: status, Cause: due.cause, Left: left})
}

// watch returns when the command has ended, or when it has to be killed (nil).
func (s *supervisor) watch(due *schedule) *syscall.WaitStatus {
	orders := make(chan order)
	go s.listen(orders)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case status := <-s.exited: // an end that has come is the command's own, whatever is due by now
			return &status
		default:
		}
		switch due.next(clock()) {
		case unix.SIGKILL:
			return nil
		case unix.SIGTERM:
			s.signalGroup(unix.SIGTERM)
			s.signalGroup(unix.SIGCONT) // a stopped process takes no other signal
		}
		timer.Reset(due.wait(clock()))
		select {
		case status := <-s.exited:
			return &status
		case o, ok := <-orders:
			switch {
			case !ok: // the worker is gone
				return nil
			case o.Lease != nil:
				due.lease = *o.Lease
			default:
				due.stopNow, due.killNow = due.stopNow || o.Stop, due.killNow || o.Kill
			}
		case <-timer.C:
		}
	}
}

// listen hands on the worker's orders, and closes the channel when the worker is gone.
func (s *supervisor) listen(orders chan<- order) {
	defer close(orders)
	for {
		var o order
		if s.worker.receive(&o) != nil {
			return
		}
		select {
		case orders <- o:
		case <-s.done:
			return
		}
	}
}

// hold starts the command and waits for it and for the orphans that come to this process. The thread that starts it
// is the one whose death its death follows, so it must not be given back before that.
func (s *supervisor) hold(cmd command, answer chan<- started) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.gone)
	// #nosec G204 -- to run the command that it was given is what this program is for; no shell reads it
	pid, err := syscall.ForkExec(string(cmd.Path), texts(cmd.Args), &syscall.ProcAttr{
		Dir: string(cmd.Dir), Env: texts(cmd.Env), Files: s.files, Sys: childAttr(),
	})
	if err != nil {
		a := started{Errno: unix.EINVAL} // a NUL byte in a text is the one error that has no number
		errors.As(err, &a.Errno)
		if len(cmd.Dir) > 0 {
			info, err := os.Stat(string(cmd.Dir))
			a.Chdir = err != nil || !info.IsDir()
		}
		answer <- a
		return
	}
	answer <- started{Pid: pid}
	for {
		reaped, status, err := s.reapNext(pid)
		if err != nil {
			return // there is no child left
		}
		if reaped == pid {
			s.exited <- status
			if !s.adopts {
				return
			}
		}
	}
}

// endAll kills what the command has left behind, or all of it if it still runs, and returns how many processes it had
// to leave. A job's end is the end of its processes.
func (s *supervisor) endAll() (left int) {
	if s.running() {
		s.killTree()
	}
	patience := time.After(killPatience)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-s.gone:
			return 0
		case <-patience:
			return max(1, s.killTree())
		case <-time.After(pause):
			s.killTree() // again: what has been started since
		}
	}
}

// killTree sends KILL to the group at one stroke, then to each descendant elsewhere, and returns how many it found.
func (s *supervisor) killTree() int {
	n := 0
	if s.signalGroup(unix.SIGKILL) {
		n = 1
	}
	if s.adopts {
		n = killDescendants()
	}
	return n
}

// signalGroup sends sig to the command's group, unless the command has ended.
func (s *supervisor) signalGroup(sig syscall.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.reaped && unix.Kill(-s.pid, sig) == nil
}

func (s *supervisor) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.reaped
}

func texts(bs [][]byte) []string {
	list := make([]string, len(bs))
	for i, b := range bs {
		list[i] = string(b)
	}
	return list
}

// signalName returns the name of a signal as people write it.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + strings.TrimPrefix(sig.String(), "signal ")
}
