package main

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
	"time"
)

// childArg makes this program a process of the procs phase. It reads one childTask, opens the queue, writes a
// line, waits for a line, drains until its input ends, and writes its counts. It serves the latency phase
// too.
const childArg = "drain-as-child"

type childTask struct {
	Engine  string `json:"engine"`
	File    File   `json:"file"`
	Workers int    `json:"workers"`
	Jobs    int    `json:"jobs"`
	Tell    bool   `json:"tell"` // write a line for each job that starts
}

func drainAsChild(ctx context.Context, stdin io.Reader, stdout io.Writer) (err error) {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var task childTask
	if err := json.Unmarshal(line, &task); err != nil {
		return err
	}
	e, ok := engineNamed(task.Engine)
	if !ok {
		return fmt.Errorf("no engine %q", task.Engine)
	}
	if err := slowSyncs(task.File.SlowSync); err != nil {
		return err
	}
	q, err := e.Open(ctx, task.File)
	if err != nil {
		return fmt.Errorf("open %s: %w", e.Name, err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	fmt.Fprintln(stdout, "ready")
	if _, err := in.ReadBytes('\n'); err != nil {
		return err
	}

	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	t := newTally(task.Jobs)
	if task.Tell {
		var mu sync.Mutex
		out := json.NewEncoder(stdout)
		t.tell = func(n int, at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(started{n, at}) // who does not hear it says so
		}
	}
	if err := q.Drain(working, task.Workers, t); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(t.counts())
}

// child is such a process, as its parent holds it.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(ctx context.Context, task childTask) (_ *child, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &child{cmd: exec.CommandContext(ctx, self, childArg)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(p.in).Encode(task); err != nil {
		return p, err
	}
	_, err = p.out.ReadString('\n')
	return p, err
}

func (p *child) begin() error {
	_, err := io.WriteString(p.in, "go\n")
	return err
}

// end asks the process to stop and returns what it counted.
func (p *child) end() (n counts, err error) {
	closed := p.in.Close()
	n, err = p.rest()
	return n, errors.Join(closed, err)
}

// rest waits for a process whose input has ended.
func (p *child) rest() (n counts, err error) {
	read := json.NewDecoder(p.out)
	for err == nil && n.Runs == nil { // before it stand the lines of a job that ran twice
		err = read.Decode(&n)
	}
	return n, errors.Join(err, p.cmd.Wait())
}

// drainInProcesses is drain with several processes on one file or database.
func drainInProcesses(ctx context.Context, c Cell, f File, r *Result) (err error) {
	q, w, err := openWatched(ctx, c, f)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = fill(ctx, q, c.Jobs)
	if err := errors.Join(err, q.Close()); err != nil {
		return fmt.Errorf("fill: %w", err)
	}

	f.New = false
	task := childTask{Engine: c.Engine.Name, File: f, Workers: c.Workers, Jobs: c.Jobs}
	var children []*child
	for range c.Procs {
		p, startErr := startChild(ctx, task)
		if p != nil {
			children = append(children, p)
		}
		err = errors.Join(err, startErr)
	}
	start := time.Now()
	for _, p := range children {
		if err == nil {
			err = p.begin()
		}
	}
	end := start
	if err == nil {
		end, err = w.untilDrained(ctx)
	}
	var all counts
	for _, p := range children {
		n, endErr := p.end()
		err = errors.Join(err, endErr)
		all.add(n)
		ran, _ := n.executions()
		r.Shares = append(r.Shares, ran)
	}
	if err != nil {
		return err
	}
	return settle(ctx, w, all, end.Sub(start), r)
}
