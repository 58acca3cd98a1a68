//go:build unix

package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startTimeout = 30 * time.Second            // for a supervising parent to start the command
	killBackstop = killTimeout + 5*time.Second // for a supervising parent to answer a Kill
)

// supported returns nil: a Unix has all that Start needs.
func supported() error { return nil }

// Process is one running command.
type Process struct {
	Pid int // of the command, and of its process group

	conn       *conn
	supervisor *os.Process  // nil: a goroutine of this process supervises
	wait       func() error // waits for the supervising parent; nil if there is none
	stdin      *os.File
	pipes      [2]pipe // stdout and stderr
	result     *head
	stderrTail *tail
	streams    []*stream

	cannotEnd func(why string) // see Spec.CannotEnd
	mu        sync.Mutex
	stuck     string // the last that it was given

	killOnce sync.Once
	done     chan struct{}
	end      End // set when done is closed
}

type pipe struct{ r, w *os.File }

// Start starts a command and returns when it runs. A [*StartError] means that it cannot be run at all. Any
// other error may pass: no memory, no more processes, a file that is being replaced, or the end of ctx. ctx
// bounds the start, not the command.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	spec = spec.withDefaults()
	path, err := LookPath(spec.Path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil { // LookPath searched from here, not from Dir
		return nil, fmt.Errorf("start child: %w", err)
	}
	p := &Process{
		result:     &head{limit: spec.ResultLimit},
		stderrTail: &tail{limit: stderrTail},
		cannotEnd:  spec.CannotEnd,
		done:       make(chan struct{}),
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	p.conn = newConn(ours)
	if err := p.start(ctx, spec, path, theirs); err != nil {
		_ = p.conn.close() // which ends what was started
		_ = p.awaitSupervisor()
		p.closeFiles(true)
		_ = theirs.Close()
		return nil, err
	}
	p.streams = []*stream{
		newStream(p.pipes[0].r, both(p.result, spec.Copies[0]), spec.Stdout),
		newStream(p.pipes[1].r, both(p.stderrTail, spec.Copies[1]), spec.Stderr),
	}
	p.closeFiles(false)
	go p.follow()
	return p, nil
}

// start runs the supervising parent, sends it the command and waits for its answer.
func (p *Process) start(ctx context.Context, spec Spec, path string, theirs *os.File) (err error) {
	if p.stdin, err = inputFile(spec.Stdin); err != nil {
		return fmt.Errorf("start child: keep its input: %w", err)
	}
	for i := range p.pipes {
		if p.pipes[i].r, p.pipes[i].w, err = os.Pipe(); err != nil {
			return fmt.Errorf("start child: %w", err)
		}
	}
	if len(spec.Supervisor) == 0 {
		p.superviseHere(theirs)
	} else if err := p.startSupervisor(spec.Supervisor, theirs); errors.Is(err, fs.ErrNotExist) {
		// Trying again does not help: /proc is not mounted, as in a plain chroot, or the program that Spec names is
		// missing.
		return &StartError{Path: spec.Path, Code: 126, Here: true,
			Err: fmt.Errorf("its supervising parent cannot be started; is /proc mounted? %w", err)}
	} else if err != nil {
		return fmt.Errorf("start supervising parent: %w", err)
	}

	_ = p.conn.file.SetReadDeadline(time.Now().Add(startTimeout))
	stop := context.AfterFunc(ctx, func() { _ = p.conn.file.SetReadDeadline(time.Now()) })
	defer stop()
	err = p.conn.send(command{
		Path: []byte(path), Args: bytesOf(append([]string{cmp.Or(spec.Name, spec.Path)}, spec.Args...)),
		Dir: []byte(spec.Dir), Env: bytesOf(spec.Env), Umask: spec.Umask,
		KillAfter: spec.KillAfter, MaxRuntime: spec.MaxRuntime, Lease: leaseOf(spec.Lease),
		Keep: spec.Keeper.message(),
	})
	var a started
	if err == nil {
		err = p.conn.receive(&a)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("start child: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("start child: no answer from the supervising parent: %w", err)
	case a.Late:
		return fmt.Errorf("start %s: %w", path, ErrLate)
	case a.Errno != 0:
		return cannotStart(spec, path, a)
	}
	if !stop() { // ctx has ended, and its deadline would cut off the message of the end
		return fmt.Errorf("start child: %w", context.Cause(ctx))
	}
	_ = p.conn.file.SetReadDeadline(time.Time{})
	p.Pid = a.Pid
	return nil
}

// startSupervisor runs argv as the supervising parent, with the command's standard files but not its
// environment: the variables of a job must not affect this program.
func (p *Process) startSupervisor(argv []string, theirs *os.File) error {
	// #nosec G204 -- this program, or the one that Spec names
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Args[0] = os.Args[0] // the name by which users find it in a list of processes
	cmd.Env = []string{"GOMAXPROCS=2"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.pipes[0].w, p.pipes[1].w
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = theirs.Close() // so that the end of that process closes the connection
	p.supervisor, p.wait = cmd.Process, cmd.Wait
	return nil
}

// superviseHere supervises in this process, whose death therefore ends the supervision.
func (p *Process) superviseHere(theirs *os.File) {
	files := []uintptr{p.stdin.Fd(), p.pipes[0].w.Fd(), p.pipes[1].w.Fd()}
	s := &supervisor{worker: newConn(theirs), files: files}
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.run()
	}()
	p.wait = func() error { <-left; return nil }
}

// awaitSupervisor waits until the supervising parent has noticed the end of the connection and has exited.
func (p *Process) awaitSupervisor() error {
	if p.wait == nil {
		return nil
	}
	if p.supervisor != nil {
		gone := make(chan struct{})
		defer close(gone)
		p.afterBackstop(gone)
	}
	return p.wait()
}

// afterBackstop ends a supervising parent that has not done what it was to when the time is over, unless over
// is closed before.
func (p *Process) afterBackstop(over <-chan struct{}) {
	time.AfterFunc(killBackstop, func() {
		select {
		case <-over:
		default:
			if !p.killHere() {
				p.afterBackstop(over)
			}
		}
	})
}

// Extend replaces the deadlines. That has no effect on a command that has been sent TERM.
func (p *Process) Extend(l Deadlines) error {
	return p.conn.send(order{Lease: new(leaseOf(l))})
}

// Stop ends the command: TERM to its process group, and KILL after KillAfter. It returns at once.
func (p *Process) Stop() { _ = p.conn.send(order{Stop: true}) }

// Kill ends the command and all its processes. It returns at once.
func (p *Process) Kill() {
	p.killOnce.Do(func() { p.afterBackstop(p.done) })
	_ = p.conn.send(order{Kill: true})
}

// LeaseIsOver says that the lease is not to be kept any more, whatever of the command lives on. Its deadlines
// stay.
func (p *Process) LeaseIsOver() { _ = p.conn.send(order{Over: true}) }

// killHere kills the command's processes, for a supervising parent that has died or is stopped, and that
// parent. It returns false if it may not signal one of them: then the parent, the only process that watches
// it, must not be ended, and is continued if it was stopped.
func (p *Process) killHere() bool {
	_ = unix.Kill(-p.Pid, unix.SIGKILL)
	if p.supervisor == nil {
		return true
	}
	_, stuck := killDescendants(p.supervisor.Pid, 0)
	if stuck == "" && p.Pid != 0 && unix.Kill(-p.Pid, 0) == unix.EPERM {
		stuck = describe(p.Pid)
	}
	if stuck == "" {
		_ = p.supervisor.Kill()
		return true
	}
	_ = unix.Kill(p.supervisor.Pid, unix.SIGCONT)
	p.tellCannotEnd(stuck)
	return false
}

// tellCannotEnd reports a change of the process that may not be signalled.
func (p *Process) tellCannotEnd(why string) {
	p.mu.Lock()
	news := p.stuck != why
	p.stuck = why
	p.mu.Unlock()
	if news && p.cannotEnd != nil {
		p.cannotEnd(why)
	}
}

// Done returns a channel that is closed when the command has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the command and returns it. Several goroutines may wait.
func (p *Process) Wait() End {
	<-p.done
	return p.end
}

// follow waits for the end, reads the rest of the output and sets p.end.
func (p *Process) follow() {
	defer close(p.done)
	e, err := p.receiveEnd()
	if err != nil { // the supervising parent kills the rest when the connection closes
		p.awaitGroup()
	}
	_ = p.conn.close()
	if how := p.awaitSupervisor(); err != nil && how != nil {
		err = how
	}
	for _, s := range p.streams {
		s.finish()
	}
	p.end = End{
		Cause: e.Cause, Left: e.Left, Cost: e.Cost,
		Stdout: p.result.kept, StdoutSize: p.result.size,
		StdoutTruncated: p.result.size > int64(len(p.result.kept)),
		StderrTail:      p.stderrTail.last(),
	}
	switch {
	case err != nil:
		p.end.Err = fmt.Errorf("supervising parent of process %d: %w", p.Pid, err)
	case e.Status == nil:
		p.end.Err = fmt.Errorf("process %d cannot be killed", p.Pid)
	case e.Status.Signaled():
		p.end.Signal = signalName(e.Status.Signal())
	default:
		p.end.ExitCode = new(e.Status.ExitStatus())
	}
}

// receiveEnd returns how the command ended, as the supervising parent says.
func (p *Process) receiveEnd() (ended, error) {
	for {
		var r report
		if err := p.conn.receive(&r); err != nil {
			return ended{}, err
		}
		if r.CannotEnd != nil {
			p.tellCannotEnd(*r.CannotEnd)
		}
		if r.Ended != nil {
			return *r.Ended, nil
		}
	}
}

// awaitGroup kills the process group of the command, whose supervising parent has died. It waits while no
// process of the group may be signalled.
func (p *Process) awaitGroup() {
	err := unix.Kill(-p.Pid, unix.SIGKILL)
	for pause := stuckAfter; err == unix.EPERM; pause = stuckLook {
		time.Sleep(pause)
		if err = unix.Kill(-p.Pid, 0); err == unix.EPERM { // no KILL: the number may be another group's by now
			p.tellCannotEnd(describe(p.Pid))
		}
	}
}

// closeFiles closes this process's copies of the command's files; with all, those it reads from too.
func (p *Process) closeFiles(all bool) {
	files := []*os.File{p.stdin, p.pipes[0].w, p.pipes[1].w}
	if all {
		files = append(files, p.pipes[0].r, p.pipes[1].r)
	}
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// passing are the errors of a start that may succeed later.
var passing = []syscall.Errno{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ETXTBSY}

// cannotStart turns the supervising parent's answer into an error.
func cannotStart(spec Spec, path string, a started) error {
	switch {
	case a.Chdir:
		return &StartError{Path: spec.Path, Code: 126, Err: fmt.Errorf("in directory %s: %w", spec.Dir, a.Errno)}
	case slices.Contains(passing, a.Errno):
		return fmt.Errorf("start %s: %w", path, a.Errno)
	case errors.Is(a.Errno, fs.ErrNotExist):
		err := error(a.Errno)
		if _, exists := os.Stat(path); exists == nil {
			err = fmt.Errorf("its interpreter: %w", err)
		}
		return &StartError{Path: spec.Path, Code: 127, Err: err}
	case a.Errno == unix.ENOEXEC:
		err := fmt.Errorf("%w (a script begins with a line such as #!/bin/sh)", a.Errno)
		return &StartError{Path: spec.Path, Code: 126, Err: err}
	}
	return &StartError{Path: spec.Path, Code: 126, Err: a.Errno}
}

// message returns k for the supervising parent; nil for the zero Keeper.
func (k Keeper) message() *keep {
	if len(k.Args) == 0 {
		return nil
	}
	return &keep{Args: bytesOf(k.Args), Env: bytesOf(k.Env), Every: k.Every}
}

func bytesOf(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, s := range texts {
		list[i] = []byte(s)
	}
	return list
}
