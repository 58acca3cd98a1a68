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

const (
	// killTimeout bounds the wait for processes that KILL does not end at once, because the kernel holds them.
	killTimeout = 5 * time.Second

	// stuckAfter is how long signalling a process must fail before that is reported: it also fails for a moment
	// while a process ends. stuckLook is how often such processes are looked for then; the end of one is noticed
	// at once.
	stuckAfter = 200 * time.Millisecond
	stuckLook  = 5 * time.Second
)

// Supervise makes this process the supervising parent of one command. It receives the command from the worker
// that started this process, runs it, enforces its deadlines, and returns when the command and all its
// processes have ended. A program that runs workers calls it first thing in main, when started with the
// arguments that Spec.Supervisor gives it.
//
// This process has its own session, so a signal to the worker's process group does not reach it. It kills the
// command at once when the worker has died, and at the deadline when the worker is frozen.
//
// On Linux, this covers every process that the command has started, in any process group or session; if this
// process is killed, the command still ends. On other systems, and on a Linux without /proc, it covers the
// process group of the command.
//
// It waits for a process that it may not signal, such as one that sudo made root's, as long as that lives. If
// the worker is dead or frozen meanwhile, it keeps the lease: it runs the Keeper of the Spec.
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
		adopts: adoptOrphans(), alone: true,
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
	alone  bool      // this process does nothing else

	pid       int
	orders    chan order              // from the worker; closed when it has died
	exited    chan syscall.WaitStatus // of the command
	oneEnded  chan struct{}           // a child has been reaped; has room for one
	childless chan struct{}           // closed when no child is left
	done      chan struct{}           // closed when run returns

	keeper keeper
	said   string // the process that may not be signalled, as the worker knows it

	mu     sync.Mutex // held while reaping and signalling: once reaped, the number may belong to another process
	reaped bool       // the command; its group must not be signalled any more
	cost   Cost       // of the children that have been reaped, the keeper's aside
}

// run receives one command from the worker, runs it and reports its end.
func (s *supervisor) run() {
	defer s.worker.close()
	var cmd command
	if err := s.worker.receive(&cmd); err != nil {
		return // the worker has died
	}
	s.exited, s.childless, s.done = make(chan syscall.WaitStatus, 1), make(chan struct{}), make(chan struct{})
	s.orders, s.oneEnded = make(chan order), make(chan struct{}, 1)
	s.keeper = keeper{keep: cmd.Keep}
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
	go s.listen()
	status := s.watch(&due)
	left := s.endAll(&due)
	if status == nil {
		select {
		case st := <-s.exited:
			status = &st
		default:
		}
	}
	_ = s.worker.send(report{Ended: &ended{Status: status, Cause: due.cause, Left: left, Cost: s.spent()}})
}

// watch returns the status of the command when it has ended, or nil when it must be killed.
func (s *supervisor) watch(due *schedule) *syscall.WaitStatus {
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
			_ = s.signalGroup(unix.SIGTERM)
			_ = s.signalGroup(unix.SIGCONT) // a stopped process handles no other signal
			if due.cause == CauseLease && s.adopts {
				s.keeper.run(s, unsignallable(os.Getpid())) // it will not end in time
			}
		}
		timer.Reset(due.wait(clock()))
		select {
		case status := <-s.exited:
			return &status
		case o, ok := <-s.orders:
			if !ok { // the worker has died
				s.orders, s.keeper.alone = nil, true
				return nil
			}
			s.take(o, due)
		case <-timer.C:
		}
	}
}

// take carries out an order of the worker.
func (s *supervisor) take(o order, due *schedule) {
	if o.Lease != nil {
		due.lease = *o.Lease
	}
	due.stopNow, due.killNow = due.stopNow || o.Stop, due.killNow || o.Kill
	s.keeper.over = s.keeper.over || o.Over
}

// listen passes on the worker's orders, and closes the channel when the connection has ended.
func (s *supervisor) listen() {
	orders := s.orders
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
	ours := 0
	if cmd.Umask != nil && s.alone {
		ours = unix.Umask(*cmd.Umask)
	}
	// #nosec G204 -- running the given command is the purpose; no shell is involved
	pid, err := syscall.ForkExec(string(cmd.Path), texts(cmd.Args), &syscall.ProcAttr{
		Dir: string(cmd.Dir), Env: texts(cmd.Env), Files: s.files, Sys: childAttr(),
	})
	if cmd.Umask != nil && s.alone { // what the keeper writes is not the command's
		unix.Umask(ours)
	}
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
	least := leastRSS()
	for {
		reaped, status, used, err := s.reapNext(pid)
		if err != nil {
			return // no child is left
		}
		if reaped != s.keeper.process() {
			s.spend(used, least)
		}
		s.keeper.reaped(reaped, status)
		if reaped == pid {
			s.exited <- status
			if !s.adopts {
				return
			}
		}
		select {
		case s.oneEnded <- struct{}{}:
		default:
		}
	}
}

// endAll kills the command, if it still runs, and all processes that it left behind. It waits for their end:
// as long as one lives that may not be signalled, and otherwise for killTimeout. It returns how many are
// left.
func (s *supervisor) endAll(due *schedule) (left int) {
	var n int
	var stuck string
	if s.running() {
		n, stuck = s.killTree()
	}
	var since time.Time // when one was seen first that may not be signalled; zero: there is none
	hidden := false     // there is a child, and /proc does not show it: it hides the processes of others
	giveUp := time.Now().Add(killTimeout)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var oneEnded <-chan struct{} // else the end of the last child would be looked into before it is known
		switch {
		case stuck == "":
			since = time.Time{}
			s.tellCannotEnd("")
			if time.Now().After(giveUp) {
				return max(1, n)
			}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= stuckAfter:
			s.tellCannotEnd(stuck)
			giveUp = time.Now().Add(killTimeout) // once that one has ended
			pause, oneEnded = stuckLook, s.oneEnded
			if s.keeper.alone || due.lease.Term.passed(clock()) {
				s.keeper.run(s, stuck)
				pause = s.keeper.wait()
			} else if term := due.lease.Term; term != 0 {
				pause = min(pause, max(time.Duration(term-clock()), 0)+time.Millisecond)
			}
		}
		select {
		case <-s.childless:
			return 0
		case o, ok := <-s.orders:
			if !ok {
				s.orders, s.keeper.alone = nil, true
			}
			s.take(o, due)
		case <-oneEnded:
		case <-time.After(pause):
		}
		n, stuck = s.killTree() // again: it may have started more
		if hidden = hidden || n == 0 && s.adopts && time.Now().After(giveUp); hidden && stuck == "" {
			if stuck = "a process that /proc does not show"; s.running() {
				stuck = describe(s.pid)
			}
		}
	}
}

// tellCannotEnd reports to the worker a change of the process that may not be signalled.
func (s *supervisor) tellCannotEnd(why string) {
	if s.said != why {
		s.said = why
		_ = s.worker.send(report{CannotEnd: &why})
	}
}

// killTree sends KILL to the whole group, then to each descendant outside it. It returns how many it found,
// and if it may not signal one of them, which one and why.
func (s *supervisor) killTree() (n int, stuck string) {
	err := s.signalGroup(unix.SIGKILL)
	if s.adopts {
		return killDescendants(os.Getpid(), s.keeper.process())
	}
	switch err {
	case nil:
		n = 1
	case unix.EPERM:
		n, stuck = 1, describe(s.pid)
	}
	return n, stuck
}

// signalGroup sends sig to the command's group unless the command has been reaped.
func (s *supervisor) signalGroup(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reaped {
		return unix.ESRCH
	}
	return unix.Kill(-s.pid, sig)
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
