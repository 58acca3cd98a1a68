package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

const (
	lease   = 2 * time.Second
	timeout = 3 * time.Minute
)

// work runs the two workers and kills one; it returns a job that the killed one held.
func (d *demo) work(ctx context.Context) (victim event.JobID, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	doomed, err := d.startWorker(ctx, "doomed", "sh", "-c", "sleep 60")
	if err != nil {
		return "", err
	}
	defer doomed.end()
	held, err := d.awaitHeld(ctx, "doomed")
	if err != nil {
		return "", doomed.blame(err)
	}
	d.say("worker doomed (pid %d) holds job %s, and its command hangs", doomed.cmd.Process.Pid, held)
	steady, err := d.startWorker(ctx, "steady", d.sumCommand()...)
	if err != nil {
		return "", err
	}
	defer steady.end()
	d.say("worker steady (pid %d) computes SHA-256 sums, 2 at a time", steady.cmd.Process.Pid)
	if err := doomed.cmd.Process.Kill(); err != nil {
		return "", err
	}
	d.say("kill -9 %d: its lease of %s runs out, a sweeper takes the job back, steady gets it",
		doomed.cmd.Process.Pid, lease)

	sweeping, stop := context.WithCancel(ctx)
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		s := commands.Sweeper{Service: d.service, Actor: "sweeper:demo"}
		s.Run(sweeping, 250*time.Millisecond, func(commands.SweepReport, error) {})
	}()
	defer func() { stop(); <-swept }()
	if err := d.awaitAll(ctx); err != nil {
		return "", steady.blame(err)
	}
	return held, nil
}

// sumCommand reads a path on its standard input and prints the sum of that file.
func (d *demo) sumCommand() []string {
	if _, err := exec.LookPath("sha256sum"); err == nil {
		return []string{"sh", "-c", `IFS= read -r file; exec sha256sum <"$file"`}
	}
	return []string{program(), SumWord}
}

// program is the executable of jobledger.
func program() string {
	if self, err := os.Executable(); err == nil {
		return self
	}
	return os.Args[0]
}

// SumWord is the only argument of a command that a worker runs where there is no sha256sum. The program that
// gets it calls Sum.
const SumWord = "__sha256"

// sumStdin prints the sum of the file whose path is on stdin.
func Sum(stdin io.Reader, stdout io.Writer) error {
	path, err := io.ReadAll(stdin)
	if err != nil {
		return err
	}
	sum, err := sumOf(string(path))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s  -\n", sum)
	return err
}

// process is a worker process that the demo has started.
type process struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	exited chan struct{}
}

func (d *demo) startWorker(ctx context.Context, name string, command ...string) (*process, error) {
	args := append([]string{"work", "-q", queue, "--worker", name, "--lease", lease.String()}, "--")
	if name == "steady" {
		args = append(args[:len(args)-1], "-j", "2", "--")
	}
	// #nosec G204 -- this program itself
	cmd := exec.CommandContext(ctx, program(), append(args, command...)...)
	w := &process{cmd: cmd, stderr: new(bytes.Buffer), exited: make(chan struct{})}
	w.cmd.Stderr = w.stderr
	// The DSN may hold a password, and all users can read the arguments of a process.
	w.cmd.Env = append(os.Environ(), "JOBLEDGER_DB="+d.DB)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.cmd.Wait() // an error is expected: it may be killed
		close(w.exited)
	}()
	return w, nil
}

// end asks the worker to stop and waits for its end.
func (w *process) end() {
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.exited:
	case <-time.After(10 * time.Second):
		_ = w.cmd.Process.Kill()
		<-w.exited
	}
}

// blame kills the worker and adds what it wrote to stderr to an error.
func (w *process) blame(err error) error {
	_ = w.cmd.Process.Kill()
	<-w.exited
	if text := strings.TrimSpace(w.stderr.String()); text != "" {
		return fmt.Errorf("%w; stderr of the worker: %s", err, text)
	}
	return err
}

// awaitHeld waits until the worker owns a job, and returns that.
func (d *demo) awaitHeld(ctx context.Context, worker string) (held event.JobID, err error) {
	err = d.await(ctx, func(j projection.Job) bool {
		if j.State.Held() && j.Worker.Name == worker {
			held = j.ID
		}
		return held != ""
	}, false)
	return held, err
}

// awaitAll waits until every job has succeeded.
func (d *demo) awaitAll(ctx context.Context) error {
	return d.await(ctx, func(j projection.Job) bool { return j.State == event.SucceededState }, true)
}

// await polls until all of the jobs, or one of them, are good.
func (d *demo) await(ctx context.Context, good func(projection.Job) bool, all bool) error {
	for {
		done := all
		err := d.service.Store.Read(ctx, func(tx *ledger.Tx) error {
			for _, id := range d.ids {
				j, _, err := projection.Get(ctx, tx, id)
				if err != nil {
					return err
				}
				if good(j) != all {
					done = !all
					return nil
				}
			}
			return nil
		})
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return failf(ErrTimeout, "the jobs were not done within %s", timeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
