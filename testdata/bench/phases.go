package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// openWatched opens the queue of a run, and a watcher beside it that knows how large the queue is without a
// job.
func openWatched(ctx context.Context, c Cell, f File) (Queue, *watcher, error) {
	q, err := c.Engine.Open(ctx, f)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	w, err := watch(f, c.Engine)
	if err != nil {
		return nil, nil, errors.Join(err, q.Close())
	}
	if w.before, err = w.Bytes(ctx); err != nil {
		_ = w.Close()
		return nil, nil, errors.Join(err, q.Close())
	}
	return q, w, nil
}

// enqueue measures one job a call.
func enqueue(ctx context.Context, c Cell, f File, r *Result) error {
	return produce(ctx, c, f, r, func(q Queue) ([]time.Duration, error) {
		payloads := newPayloads(c.Jobs)
		var next atomic.Int64
		return together(c.Workers, func() (took []time.Duration, err error) {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(payloads) || ctx.Err() != nil {
					return took, ctx.Err()
				}
				start := time.Now()
				if err := q.Enqueue(context.WithoutCancel(ctx), payloads[i]); err != nil {
					return nil, err
				}
				took = append(took, time.Since(start))
			}
		})
	})
}

// batch measures batchSize jobs a call, from one caller.
func batch(ctx context.Context, c Cell, f File, r *Result) error {
	return produce(ctx, c, f, r, func(q Queue) ([]time.Duration, error) {
		return fill(ctx, q, c.Jobs)
	})
}

// produce opens the queue, times put and checks that every job is there.
func produce(ctx context.Context, c Cell, f File, r *Result, put func(Queue) ([]time.Duration, error)) (
	err error) {
	q, w, err := openWatched(ctx, c, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	defer w.Close()

	start := time.Now()
	took, err := put(q)
	if err != nil {
		return err
	}
	r.Seconds = time.Since(start).Seconds()
	r.JobsPerS = float64(c.Jobs) / r.Seconds
	r.setTimes(took)

	stored, err := w.Left(ctx)
	if err != nil {
		return err
	}
	r.Left = c.Jobs - stored
	return setBytes(ctx, w, r)
}

// drain measures jobs that wait already, with the workers of one process.
func drain(ctx context.Context, c Cell, f File, r *Result) (err error) {
	q, w, err := openWatched(ctx, c, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	defer w.Close()
	if _, err := fill(ctx, q, c.Jobs); err != nil {
		return fmt.Errorf("fill: %w", err)
	}

	t := newTally(c.Jobs)
	stop := startDrain(ctx, q, c.Workers, t)
	end, err := w.untilDrained(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	return settle(ctx, w, t.counts(), end.Sub(t.start), r)
}

// startDrain starts workers in this process. stop ends them and returns when they have ended.
func startDrain(ctx context.Context, q Queue, workers int, t *Tally) (stop func() error) {
	working, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Drain(working, workers, t) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// settle fills in the result of a drain that has ended.
func settle(ctx context.Context, w *watcher, n counts, took time.Duration, r *Result) (err error) {
	r.setCounts(n)
	if r.Left, err = w.Left(ctx); err != nil {
		return err
	}
	r.Seconds = took.Seconds()
	r.JobsPerS = float64(r.Jobs-r.Left) / r.Seconds
	return setBytes(ctx, w, r)
}

func setBytes(ctx context.Context, w *watcher, r *Result) error {
	if err := w.Compact(ctx); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	after, err := w.Bytes(ctx)
	r.BytesPerJob = max(0, float64(after-w.before)/float64(r.Jobs))
	return err
}

// fill enqueues n jobs in batches and returns how long each took.
func fill(ctx context.Context, q Queue, n int) (took []time.Duration, err error) {
	payloads := newPayloads(n)
	for len(payloads) > 0 && ctx.Err() == nil {
		k := min(batchSize, len(payloads))
		start := time.Now()
		if err := q.EnqueueBatch(context.WithoutCancel(ctx), payloads[:k]); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		payloads = payloads[k:]
	}
	return took, ctx.Err()
}

func newPayloads(n int) [][]byte {
	p := make([][]byte, n)
	for i := range p {
		p[i] = newPayload(i)
	}
	return p
}

// together runs fn in n goroutines and returns all that they return.
func together[T any](n int, fn func() ([]T, error)) ([]T, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  []T
		errs error
	)
	for range n {
		wg.Go(func() {
			part, err := fn()
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, part...), errors.Join(errs, err)
		})
	}
	wg.Wait()
	return all, errs
}
