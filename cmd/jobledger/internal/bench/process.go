package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"jobledger/commands"
	"jobledger/ledger"
)

// Word is the only argument of a process that Run starts. The program that gets it calls Process.
const Word = "__bench"

// process is a task under way, in this process or another.
type process struct {
	begin func() error
	stop  func()                // asks it to end early, which is the only end of the phase latency
	end   func() (tally, error) // waits for it
}

// here does the task in this process.
func (t task) here(ctx context.Context, service *commands.Service) *process {
	ctx, stop := context.WithCancel(ctx)
	var sum tally
	var err error
	done := make(chan struct{})
	return &process{
		begin: func() error {
			go func() {
				defer close(done)
				sum, err = t.perform(ctx, service)
			}()
			return nil
		},
		stop: stop,
		end: func() (tally, error) {
			defer stop()
			<-done
			return sum, err
		},
	}
}

// elsewhere does the task in a new process of this program, which is ready when elsewhere returns. After an
// error there is no process.
func (t task) elsewhere(ctx context.Context) (_ *process, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, Word) // #nosec G204 -- this program, or the caller's
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out := bufio.NewReader(pipe)
	if err = json.NewEncoder(in).Encode(t); err == nil {
		_, err = out.ReadString('\n')
	}
	if err != nil {
		_ = in.Close()
		return nil, errors.Join(fmt.Errorf("start another process: %w", err), cmd.Wait())
	}
	stop := sync.OnceFunc(func() { _ = in.Close() })
	return &process{
		begin: func() error {
			_, err := io.WriteString(in, "go\n")
			return err
		},
		stop: stop,
		end: func() (c tally, err error) {
			err = json.NewDecoder(out).Decode(&c)
			stop()
			return c, errors.Join(err, cmd.Wait())
		},
	}, nil
}

// Process runs the part of a benchmark that the parent process started this one for. It reads a task from
// stdin, says that it is ready, waits for a line, does the task and writes its tally to stdout. It stops when
// stdin ends.
func Process(stdin io.Reader, stdout io.Writer) (err error) {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := ledger.OpenExisting(ctx, t.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	fmt.Fprintln(stdout, "ready")
	if _, err := in.ReadBytes('\n'); err != nil {
		return nil // the run was cancelled before it began
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	done, err := t.perform(ctx, &commands.Service{Store: store})
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(done)
}
