package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/projection"
)

// benchWord is the hidden command that makes this program one more process of bench. It reads a benchTask, says that
// it is ready, waits for a line, does the task and writes its benchCounts. When its input ends, it stops.
const benchWord = "__bench"

const (
	benchQueue  = "bench"
	benchActor  = "bench"
	benchBatch  = 1000 // jobs a call
	benchHeader = 16   // bytes of a payload: the job's number and when it was sent
)

// benchTask is what one process does.
type benchTask struct {
	DB       string `json:"db"`
	Phase    string `json:"phase"` // enqueue, batch, drain, or latency: a worker that goes on until it is stopped
	From, To int    // the numbers of the jobs that it enqueues
	Jobs     int    // of all processes
	Workers  int
	Payload  int
}

// benchCounts is what one process has done.
type benchCounts struct {
	Runs  []int32         // executions of each job
	Stray int64           // of something that was never enqueued
	Took  []time.Duration // of a call, or from a job's sending to its start
	Ended time.Time
}

func (c *benchCounts) add(d benchCounts) {
	if short := len(d.Runs) - len(c.Runs); short > 0 {
		c.Runs = append(c.Runs, make([]int32, short)...)
	}
	for i, n := range d.Runs {
		c.Runs[i] += n
	}
	c.Stray += d.Stray
	c.Took = append(c.Took, d.Took...)
	if d.Ended.After(c.Ended) {
		c.Ended = d.Ended
	}
}

// executions returns how often jobs ran, and how many jobs ran more than once.
func (c *benchCounts) executions() (all, twice int) {
	for _, n := range c.Runs {
		all += int(n)
		if n > 1 {
			twice++
		}
	}
	return all + int(c.Stray), twice + int(c.Stray)
}

// perform does the task on an open ledger; when ctx ends, it stops.
func (t benchTask) perform(ctx context.Context, service *commands.Service) (c benchCounts, err error) {
	switch t.Phase {
	case "enqueue":
		c.Took, err = t.enqueue(ctx, service, 1)
	case "batch":
		c.Took, err = t.enqueue(ctx, service, benchBatch)
	default:
		c, err = t.work(ctx, service)
	}
	c.Ended = time.Now()
	return c, err
}

// enqueue sends the task's jobs, so many a call, from as many callers as there are workers.
func (t benchTask) enqueue(ctx context.Context, service *commands.Service, batch int) (took []time.Duration, err error) {
	var next atomic.Int64
	next.Store(int64(t.From))
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range t.Workers {
		callers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(batch))) - batch
				if from >= t.To {
					return
				}
				d, sendErr := t.send(ctx, service, from, min(from+batch, t.To))
				mu.Lock()
				took, err = append(took, d), errors.Join(err, sendErr)
				mu.Unlock()
				if sendErr != nil {
					return
				}
			}
		})
	}
	callers.Wait()
	return took, errors.Join(err, ctx.Err())
}

// send enqueues the jobs from…to−1 in one call.
func (t benchTask) send(ctx context.Context, service *commands.Service, from, to int) (time.Duration, error) {
	jobs := make([]commands.Enqueue, 0, to-from)
	start := time.Now()
	for n := from; n < to; n++ {
		payload := make([]byte, t.Payload)
		binary.BigEndian.PutUint64(payload, uint64(n))
		binary.BigEndian.PutUint64(payload[8:], uint64(start.UnixNano()))
		jobs = append(jobs, commands.Enqueue{Queue: benchQueue, Payload: payload})
	}
	_, err := service.Enqueue(ctx, benchActor, jobs...)
	return time.Since(start), err
}

// work is one Worker whose jobs only count.
func (t benchTask) work(ctx context.Context, service *commands.Service) (benchCounts, error) {
	runs := make([]atomic.Int32, t.Jobs)
	var stray atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	w := &worker.Worker{Service: service, Process: self(fmt.Sprintf("bench-%d", os.Getpid()), ""), Queues: []string{benchQueue},
		Slots: t.Workers, Drain: t.Phase == "drain",
		Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			now := time.Now()
			n, sent := benchPayload(job.Payload)
			if n >= uint64(t.Jobs) {
				stray.Add(1)
				return nil, nil
			}
			runs[n].Add(1)
			if t.Phase == "latency" {
				mu.Lock()
				took = append(took, now.Sub(sent))
				mu.Unlock()
			}
			return nil, nil
		})}
	stop := context.AfterFunc(ctx, w.Stop)
	defer stop()
	_, err := w.Run(context.WithoutCancel(ctx))
	c := benchCounts{Runs: make([]int32, t.Jobs), Stray: stray.Load(), Took: took}
	for i := range runs {
		c.Runs[i] = runs[i].Load()
	}
	return c, err
}

// benchPayload takes the head of a payload apart.
func benchPayload(b []byte) (n uint64, sent time.Time) {
	if len(b) < benchHeader {
		return 1 << 63, time.Time{}
	}
	return binary.BigEndian.Uint64(b), time.Unix(0, int64(binary.BigEndian.Uint64(b[8:])))
}

// benchProcess is a task under way, in this process or another.
type benchProcess struct {
	begin func() error
	stop  func()                      // tells it to end early, which is the only end of a "latency"
	end   func() (benchCounts, error) // waits for it
}

// here does the task in this process.
func (t benchTask) here(ctx context.Context, service *commands.Service) *benchProcess {
	ctx, stop := context.WithCancel(ctx)
	var counts benchCounts
	var err error
	done := make(chan struct{})
	return &benchProcess{
		begin: func() error {
			go func() {
				defer close(done)
				counts, err = t.perform(ctx, service)
			}()
			return nil
		},
		stop: stop,
		end: func() (benchCounts, error) {
			defer stop()
			<-done
			return counts, err
		},
	}
}

// elsewhere does the task in a process of its own, which is ready when elsewhere returns. Where err is not nil, nothing
// is left of it.
func (t benchTask) elsewhere(ctx context.Context) (_ *benchProcess, err error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, benchWord) // #nosec G204 -- this program itself
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
	return &benchProcess{
		begin: func() error {
			_, err := io.WriteString(in, "go\n")
			return err
		},
		stop: stop,
		end: func() (c benchCounts, err error) {
			err = json.NewDecoder(out).Decode(&c)
			stop()
			return c, errors.Join(err, cmd.Wait())
		},
	}, nil
}

// benchAsProcess is the other end of elsewhere.
func benchAsProcess(stdin io.Reader, stdout io.Writer) (err error) {
	in := bufio.NewReader(stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var t benchTask
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
		return nil // the run was given up
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	counts, err := t.perform(ctx, &commands.Service{Store: store})
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(counts)
}
