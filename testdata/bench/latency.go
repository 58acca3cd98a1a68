package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	latencySlots  = 8                     // workers, all idle but one
	latencyWarmUp = 10                    // jobs that are not counted
	latencyPause  = 10 * time.Millisecond // between two jobs: half of it or up to as much again
	latencyLimit  = 10 * time.Second      // after which a job that has not started never will
)

// started is one execution, as the process that enqueues learns of it. Processes of one machine share a
// clock.
type started struct {
	N  int       `json:"n"`
	At time.Time `json:"at"`
}

// latency measures the time from the call that enqueues a job to the start of its handler, with workers that
// are idle, in this process (Procs 1) or in another (Procs 2).
func latency(ctx context.Context, c Cell, f File, r *Result) (err error) {
	q, w, err := openWatched(ctx, c, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	defer w.Close()

	heard := make(chan started, 2*c.Jobs) // has room for jobs that run twice
	stop, err := latencyWorkers(ctx, c, f, q, heard)
	if err != nil {
		return err
	}
	start := time.Now()
	took, err := oneByOne(ctx, q, newPayloads(c.Jobs), heard)
	if err == nil {
		_, err = w.untilDrained(ctx)
	}
	n, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	if err := settle(ctx, w, n, time.Since(start), r); err != nil {
		return err
	}
	r.setTimes(took)
	return nil
}

// latencyWorkers starts the workers. stop ends them and returns what they counted.
func latencyWorkers(ctx context.Context, c Cell, f File, q Queue, heard chan<- started) (
	stop func() (counts, error), err error) {
	if c.Procs == 1 {
		t := newTally(c.Jobs)
		t.tell = func(n int, at time.Time) { tell(heard, started{n, at}) }
		end := startDrain(ctx, q, c.Workers, t)
		return func() (counts, error) {
			err := end()
			return t.counts(), err
		}, nil
	}
	f.New = false
	p, err := startChild(ctx, childTask{Engine: c.Engine.Name, File: f, Workers: c.Workers, Jobs: c.Jobs,
		Tell: true})
	if err == nil {
		err = p.begin()
	}
	if err != nil {
		if p != nil {
			_, endErr := p.end()
			err = errors.Join(err, endErr)
		}
		return nil, err
	}
	listened := make(chan error, 1)
	go func() { listened <- p.hear(c.Jobs, heard) }()
	return func() (counts, error) {
		closed := p.in.Close()
		heardErr := <-listened
		n, err := p.rest()
		return n, errors.Join(closed, heardErr, err)
	}, nil
}

// oneByOne enqueues the payloads, each some time after the one before has started, and returns the time from
// call to start, but for the first few.
func oneByOne(ctx context.Context, q Queue, payloads [][]byte, heard <-chan started) (took []time.Duration,
	err error) {
	for i, payload := range payloads {
		time.Sleep(latencyPause/2 + rand.N(latencyPause))
		start := time.Now()
		if err := q.Enqueue(ctx, payload); err != nil {
			return nil, err
		}
		select {
		case s := <-heard:
			if s.N != i {
				return nil, fmt.Errorf("job %d started, not %d", s.N, i)
			}
			if i >= latencyWarmUp {
				took = append(took, s.At.Sub(start))
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(latencyLimit):
			return nil, fmt.Errorf("job %d did not start within %s", i, latencyLimit)
		}
	}
	return took, nil
}

// hear passes on what a child with Tell says of so many jobs.
func (p *child) hear(jobs int, heard chan<- started) error {
	for range jobs {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return err
		}
		var s started
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		tell(heard, s)
	}
	return nil
}

// tell is not a reason to wait: where there is no room nobody listens any more.
func tell(heard chan<- started, s started) {
	select {
	case heard <- s:
	default:
	}
}
