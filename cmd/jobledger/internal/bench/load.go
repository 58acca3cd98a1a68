package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/projection"
)

const (
	queue     = "bench"
	actor     = "bench"
	batchSize = 1000 // jobs per call of the batch phase

	// HeaderBytes is the smallest payload: it holds the number of the job and the time at which it was sent.
	HeaderBytes = 16
)

// task is what one process does. The phase latency is a worker that runs until it is stopped.
type task struct {
	DB       string `json:"db"`
	Phase    string `json:"phase"` // enqueue, batch, drain or latency
	From, To int    // the numbers of the jobs that it enqueues: From…To-1
	Jobs     int    // of all processes
	Workers  int
	Payload  int
}

// tally is what one process has done.
type tally struct {
	Runs  []int32         // executions of each job
	Stray int64           // executions of jobs that were never enqueued
	Took  []time.Duration // of a call, or from the call that enqueues a job to its start
	Ended time.Time
}

func (c *tally) add(d tally) {
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

// executions returns how many times jobs ran, and how many jobs ran more than once or were never enqueued.
func (c *tally) executions() (all, twice int) {
	for _, n := range c.Runs {
		all += int(n)
		if n > 1 {
			twice++
		}
	}
	return all + int(c.Stray), twice + int(c.Stray)
}

// perform does the task on an open ledger. It stops when ctx ends.
func (t task) perform(ctx context.Context, service *commands.Service) (c tally, err error) {
	switch t.Phase {
	case "enqueue":
		c.Took, err = t.enqueue(ctx, service, 1)
	case "batch":
		c.Took, err = t.enqueue(ctx, service, batchSize)
	default:
		c, err = t.work(ctx, service)
	}
	c.Ended = time.Now()
	return c, err
}

// enqueue sends the jobs of the task in batches, from as many callers as there are workers.
func (t task) enqueue(
	ctx context.Context, service *commands.Service, batch int,
) (took []time.Duration, err error) {
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

// send enqueues the jobs from…to-1 in one call and returns how long that took.
func (t task) send(ctx context.Context, service *commands.Service, from, to int) (time.Duration, error) {
	jobs := make([]commands.Enqueue, 0, to-from)
	start := time.Now()
	for n := from; n < to; n++ {
		payload := make([]byte, t.Payload)
		binary.BigEndian.PutUint64(payload, uint64(n))
		binary.BigEndian.PutUint64(payload[8:], uint64(start.UnixNano()))
		jobs = append(jobs, commands.Enqueue{Queue: queue, Payload: payload})
	}
	_, err := service.Enqueue(ctx, actor, jobs...)
	return time.Since(start), err
}

// work runs one Worker, whose handler counts.
func (t task) work(ctx context.Context, service *commands.Service) (tally, error) {
	runs := make([]atomic.Int32, t.Jobs)
	var stray atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	w := &worker.Worker{Service: service, Process: self(), Queues: []string{queue}, Slots: t.Workers,
		Drain: t.Phase == "drain",
		Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			now := time.Now()
			n, sent := parseHeader(job.Payload)
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
	c := tally{Runs: make([]int32, t.Jobs), Stray: stray.Load(), Took: took}
	for i := range runs {
		c.Runs[i] = runs[i].Load()
	}
	return c, err
}

// parseHeader returns the number of a job and the time at which it was sent. A payload that is too short has
// a number that no job has.
func parseHeader(b []byte) (n uint64, sent time.Time) {
	if len(b) < HeaderBytes {
		return 1 << 63, time.Time{}
	}
	return binary.BigEndian.Uint64(b), time.Unix(0, int64(binary.BigEndian.Uint64(b[8:])))
}

// self is this process as a worker.
func self() event.Worker {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	pid := os.Getpid()
	return event.Worker{Name: fmt.Sprintf("bench-%d", pid), Boot: ulid.Make().String(),
		Host: strings.ToValidUTF8(host, "\uFFFD"), PID: pid}
}
