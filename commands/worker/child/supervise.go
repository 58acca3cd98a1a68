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

// controlFD is the connection of a supervising parent to its worker. The descriptors 0, 1 and 2 are the
// command's.
const controlFD = 3

// killTimeout bounds the wait for processes that KILL does not end at once: those blocked in the kernel, and
// those of another user.
const killTimeout = 5 * time.Second

// Supervise makes this process the supervising parent of one command. It receives the command from the worker
// that started this process, runs it, enforces its deadlines, and returns when the command and all its
// processes have ended. A program that runs workers calls it first thing in main, when started with the
// arguments that Spec.Supervisor gives it.
//
// This process has its own session, so a signal to the worker's process group does not reach it. It kills the
// command at once when the worker has died, and at the deadline when the worker is frozen.
//
// On Linux, this covers every process that the command has started, in any process group or session, as long
// as this process is permitted to signal it; if this process is killed, the command still ends. On other
// systems, and on a Linux without /proc, it covers the process group of the command.
func Supervise() error {
	unix.CloseOnExec(controlFD)
	if _, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return errors.New("supervise: to be started by a worker, not by hand")
	}
	_ = unix.SetNonblock(controlFD, true)
	// A service manager may signal all processes of a service. This one must survive to end the command in
	// order. It catches the signals instead of ignoring them, because the command would inherit that.
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

// supervisor runs one command. It lives in a process of its own or, with weaker guarantees, in a goroutine of
// the worker.
type supervisor struct {
	worker *conn
	files  []uintptr // the command's stdin, stdout and stderr
	adopts bool      // this process adopts orphans, so that every descendant of the command is its descendant

	pid       int
	exited    chan syscall.WaitStatus // of the command
	childless chan struct{}           // closed when no child is left
	done      chan struct{}           // closed when run returns

	mu     sync.Mutex // held while reaping and signalling: once reaped, the number may belong to another process
	reaped bool       // the command; its group must not be signalled any more
}

// run receives one command from the worker, runs it and reports its end.
func (s *supervisor) run() {
	defer s.worker.close()
	var cmd command
	if err := s.worker.receive(&cmd); err != nil {
		return // the worker has died
	}
	s.exited, s.childless, s.done = make(chan syscall.WaitStatus, 1), make(chan struct{}), make(chan struct{})
	defer close(s.done)
	answer := make(chan started)
	begun := clock()
	if cmd.Lease.Term.passed(begun) { // another worker may have claimed its job
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

// watch returns the status of the command when it has ended, or nil when it must be killed.
func (s *supervisor) watch(due *schedule) *syscall.WaitStatus {
	orders := make(chan order)
	go s.listen(orders)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case status := <-s.exited: // if it has ended, it ended on its own, whatever is due
			return &status
		default:
		}
		switch due.next(clock()) {
		case unix.SIGKILL:
			return nil
		case unix.SIGTERM:
			s.signalGroup(unix.SIGTERM)
			s.signalGroup(unix.SIGCONT) // a stopped process handles no other signal
		}
		timer.Reset(due.wait(clock()))
		select {
		case status := <-s.exited:
			return &status
		case o, ok := <-orders:
			switch {
			case !ok: // the worker has died
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

// listen passes on the worker's orders, and closes the channel when the connection has ended.
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

// hold starts the command, and reaps it and the orphans that this process adopts. The death of the thread
// that started the command kills the command, so hold locks its thread until the end.
func (s *supervisor) hold(cmd command, answer chan<- started) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.childless)
	// #nosec G204 -- running the given command is the purpose; no shell is involved
	pid, err := syscall.ForkExec(string(cmd.Path), texts(cmd.Args), &syscall.ProcAttr{
		Dir: string(cmd.Dir), Env: texts(cmd.Env), Files: s.files, Sys: childAttr(),
	})
	if err != nil {
		a := started{Errno: unix.EINVAL} // a NUL byte in a text is the only error without a number
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
			return // no child is left
		}
		if reaped == pid {
			s.exited <- status
			if !s.adopts {
				return
			}
		}
	}
}

// endAll kills the command, if it still runs, and all that it left behind. It returns how many processes
// could not be killed.
func (s *supervisor) endAll() (left int) {
	if s.running() {
		s.killTree()
	}
	timeout := time.After(killTimeout)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-s.childless:
			return 0
		case <-timeout:
			return max(1, s.killTree())
		case <-time.After(pause):
			s.killTree() // again: it may have started more
		}
	}
}

// killTree sends KILL to the whole group, then to each descendant outside it, and returns how many it found.
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

// signalGroup sends sig to the command's group unless the command has been reaped. It reports whether it did.
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

// signalName returns the name of a signal, such as SIGTERM.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + strings.TrimPrefix(sig.String(), "signal ")
}
