//go:build unix

package child

import (
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
	startPatience = 30 * time.Second             // how long a supervising parent may take to start the command
	killBackstop  = killPatience + 5*time.Second // after a Kill, how long one may take to say that it is done
)

// Process is one running command.
type Process struct {
	Pid int // of the command itself, and the number of its process group

	conn       *conn
	supervisor *os.Process  // nil: a goroutine of this process
	wait       func() error // for the supervising parent; nil as long as there is none
	stdin      *os.File
	pipes      [2]pipe // stdout and stderr
	result     *head
	complaints *tail
	streams    []*stream

	killOnce sync.Once
	done     chan struct{}
	end      End // set when done is closed
}

type pipe struct{ r, w *os.File }

// Start starts a command and returns when it runs. A *StartError says that it cannot be run at all; any other
// error is about this moment: no memory, no more processes, a file that is just being replaced, ctx has ended. ctx
// bounds the start, not the command.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	spec = spec.withDefaults()
	path, err := LookPath(spec.Path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil { // it was found from here, whatever Dir is
		return nil, fmt.Errorf("start child: %w", err)
	}
	c := &Process{
		result:     &head{limit: spec.ResultLimit},
		complaints: &tail{limit: stderrTail},
		done:       make(chan struct{}),
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c.conn = newConn(ours)
	if err := c.start(ctx, spec, path, theirs); err != nil {
		_ = c.conn.close() // which ends whatever has been started
		_ = c.awaitSupervisor()
		c.closeFiles(true)
		_ = theirs.Close()
		return nil, err
	}
	c.streams = []*stream{
		newStream(c.pipes[0].r, both(c.result, spec.Copies[0]), spec.Stdout),
		newStream(c.pipes[1].r, both(c.complaints, spec.Copies[1]), spec.Stderr),
	}
	c.closeFiles(false)
	go c.follow()
	return c, nil
}

// start runs the supervising parent, gives it the command and waits for its answer.
func (c *Process) start(ctx context.Context, spec Spec, path string, theirs *os.File) (err error) {
	if c.stdin, err = inputFile(spec.Stdin); err != nil {
		return fmt.Errorf("start child: keep its input: %w", err)
	}
	for i := range c.pipes {
		if c.pipes[i].r, c.pipes[i].w, err = os.Pipe(); err != nil {
			return fmt.Errorf("start child: %w", err)
		}
	}
	if len(spec.Supervisor) == 0 {
		c.superviseHere(theirs)
	} else if err := c.startSupervisor(spec.Supervisor, theirs); err != nil {
		return fmt.Errorf("start supervising parent: %w", err)
	}

	_ = c.conn.file.SetReadDeadline(time.Now().Add(startPatience))
	stop := context.AfterFunc(ctx, func() { _ = c.conn.file.SetReadDeadline(time.Now()) })
	defer stop()
	err = c.conn.send(command{
		Path: []byte(path), Dir: []byte(spec.Dir), Args: bytesOf(append([]string{spec.Path}, spec.Args...)), Env: bytesOf(spec.Env),
		KillAfter: spec.KillAfter, MaxRuntime: spec.MaxRuntime, Lease: leaseOf(spec.Lease),
	})
	var a started
	if err == nil {
		err = c.conn.receive(&a)
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
	if !stop() { // ctx ended just now; the deadline that it set, or is about to set, would cut the ending's message
		return fmt.Errorf("start child: %w", context.Cause(ctx))
	}
	_ = c.conn.file.SetReadDeadline(time.Time{})
	c.Pid = a.Pid
	return nil
}

// startSupervisor runs argv as the supervising parent. Its standard files are those of the command. Its environment is
// not: what a job's environment sets, it sets for the job only.
func (c *Process) startSupervisor(argv []string, theirs *os.File) error {
	// #nosec G204 -- this program itself, or what a Go program names
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Args[0] = os.Args[0] // this is what people look for in a list of processes
	cmd.Env = []string{"GOMAXPROCS=2"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.pipes[0].w, c.pipes[1].w
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = theirs.Close() // so that its death can be seen
	c.supervisor, c.wait = cmd.Process, cmd.Wait
	return nil
}

// superviseHere does the same in this process, which makes it a promise only for as long as this process runs.
func (c *Process) superviseHere(theirs *os.File) {
	s := &supervisor{worker: newConn(theirs), files: []uintptr{c.stdin.Fd(), c.pipes[0].w.Fd(), c.pipes[1].w.Fd()}}
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.run()
	}()
	c.wait = func() error { <-left; return nil }
}

// awaitSupervisor waits until the supervising parent has seen that the conversation is over, and has ended.
func (c *Process) awaitSupervisor() error {
	if c.wait == nil {
		return nil
	}
	if c.supervisor != nil {
		defer time.AfterFunc(killBackstop, func() { _ = c.supervisor.Kill() }).Stop()
	}
	return c.wait()
}

// Extend puts other deadlines in the place of those that hold. They come too late for a child that has been sent TERM.
func (c *Process) Extend(l Deadlines) error {
	deadlines := leaseOf(l)
	return c.conn.send(order{Lease: &deadlines})
}

// Stop ends the child: TERM to its group, and KILL after KillAfter. It returns at once.
func (c *Process) Stop() { _ = c.conn.send(order{Stop: true}) }

// Kill ends the child and all its processes now. It returns at once.
func (c *Process) Kill() {
	c.killOnce.Do(func() {
		time.AfterFunc(killBackstop, func() {
			select {
			case <-c.done:
			default:
				c.killHere()
			}
		})
	})
	_ = c.conn.send(order{Kill: true})
}

// killHere is for a supervising parent that is gone or stopped: what the worker itself can reach is the group.
func (c *Process) killHere() {
	_ = unix.Kill(-c.Pid, unix.SIGKILL)
	if c.supervisor != nil {
		_ = c.supervisor.Kill()
	}
}

// Done is closed when the child has ended and its output has been read.
func (c *Process) Done() <-chan struct{} { return c.done }

// Wait returns how the child ended, once it has. Many may wait.
func (c *Process) Wait() End {
	<-c.done
	return c.end
}

// follow waits for the end.
func (c *Process) follow() {
	defer close(c.done)
	var e ended
	err := c.conn.receive(&e)
	if err != nil { // what the parent itself may still end, it ends now that the conversation is over
		_ = unix.Kill(-c.Pid, unix.SIGKILL)
	}
	_ = c.conn.close()
	if how := c.awaitSupervisor(); err != nil && how != nil {
		err = how
	}
	for _, s := range c.streams {
		s.finish()
	}
	c.end = End{
		Cause: e.Cause, Left: e.Left,
		Stdout: c.result.kept, StdoutSize: c.result.size, StdoutTruncated: c.result.size > int64(len(c.result.kept)),
		StderrTail: c.complaints.last(),
	}
	switch {
	case err != nil:
		c.end.Err = fmt.Errorf("supervising parent of process %d: %w", c.Pid, err)
	case e.Status == nil:
		c.end.Err = fmt.Errorf("process %d cannot be killed", c.Pid)
	case e.Status.Signaled():
		c.end.Signal = signalName(e.Status.Signal())
	default:
		code := e.Status.ExitStatus()
		c.end.ExitCode = &code
	}
}

// closeFiles closes this process's copies of the child's files, and the reading ends too if there is no child.
func (c *Process) closeFiles(all bool) {
	files := []*os.File{c.stdin, c.pipes[0].w, c.pipes[1].w}
	if all {
		files = append(files, c.pipes[0].r, c.pipes[1].r)
	}
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// cannotStart makes an error of the number that the system gave.
func cannotStart(spec Spec, path string, a started) error {
	switch {
	case a.Chdir:
		return &StartError{Path: spec.Path, Code: 126, Err: fmt.Errorf("in directory %s: %w", spec.Dir, a.Errno)}
	case slices.Contains([]syscall.Errno{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ETXTBSY}, a.Errno):
		return fmt.Errorf("start %s: %w", path, a.Errno)
	case errors.Is(a.Errno, fs.ErrNotExist):
		err := error(a.Errno)
		if _, exists := os.Stat(path); exists == nil {
			err = fmt.Errorf("its interpreter: %w", err)
		}
		return &StartError{Path: spec.Path, Code: 127, Err: err}
	case a.Errno == unix.ENOEXEC:
		return &StartError{Path: spec.Path, Code: 126, Err: fmt.Errorf("%w (a script begins with a line such as #!/bin/sh)", a.Errno)}
	}
	return &StartError{Path: spec.Path, Code: 126, Err: a.Errno}
}

func bytesOf(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, s := range texts {
		list[i] = []byte(s)
	}
	return list
}
