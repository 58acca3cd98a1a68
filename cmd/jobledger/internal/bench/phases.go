package bench

import (
	"context"
	"time"
)

const (
	pace         = 5 * time.Millisecond   // between two jobs of the phase latency, so that the worker is idle
	idleAfter    = 300 * time.Millisecond // until the workers of that phase have nothing to do
	lastTimeout  = time.Minute            // for the last job of that phase
	growthFactor = 10                     // finished jobs per measured job in the phase growth
)

func (b *run) phases() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"enqueue": b.enqueue,
		"batch":   b.enqueue,
		"drain":   b.drain,
		"latency": b.latency,
		"growth":  b.growth,
		"verify":  b.verify,
	}
}

// enqueue measures calls that enqueue.
func (b *run) enqueue(ctx context.Context) error {
	done, start, err := b.everywhere(ctx, b.Phase, nil)
	if err != nil {
		return err
	}
	b.result.setRate(done.Ended.Sub(start), b.Jobs)
	b.result.setTimes(done.Took)
	after, err := b.snapshot(ctx, 0)
	if err == nil && after.left != int64(b.Jobs) {
		return wrongf("%d jobs were acknowledged, %d are there", b.Jobs, after.left)
	}
	b.result.setSyncs(after)
	return err
}

// drain measures how long workers take for jobs that are queued already.
func (b *run) drain(ctx context.Context) error {
	if err := b.fill(ctx, b.Jobs); err != nil {
		return err
	}
	before, err := b.snapshot(ctx, 0)
	if err != nil {
		return err
	}
	done, start, err := b.everywhere(ctx, "drain", nil)
	if err != nil {
		return err
	}
	after, err := b.snapshot(ctx, before.tail)
	if err != nil {
		return err
	}
	b.result.setRate(done.Ended.Sub(start), b.Jobs-int(after.left))
	b.result.setTimes(after.took)
	b.result.setSyncs(after)
	return b.result.setExecutions(done, after.left)
}

// growth is drain on a ledger with a long history.
func (b *run) growth(ctx context.Context) error {
	if err := b.finish(ctx, b.Jobs*growthFactor); err != nil {
		return err
	}
	return b.drain(ctx)
}

// latency measures the time from the call that enqueues a job to its start by a worker that was idle.
func (b *run) latency(ctx context.Context) error {
	done, start, err := b.everywhere(ctx, "latency", func() error {
		sleep(ctx, idleAfter)
		one := task{Payload: b.Payload}
		for n := range b.Jobs {
			if _, err := one.send(ctx, b.service, n, n+1); err != nil {
				return err
			}
			sleep(ctx, pace)
		}
		for until := time.Now().Add(lastTimeout); ; sleep(ctx, pace) {
			if at, err := b.snapshot(ctx, -1); err != nil || at.left == 0 || time.Now().After(until) {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	after, err := b.snapshot(ctx, 0)
	if err != nil {
		return err
	}
	b.result.setRate(done.Ended.Sub(start), 0)
	b.result.setTimes(done.Took)
	return b.result.setExecutions(done, after.left)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// verify measures the check of a whole ledger.
func (b *run) verify(ctx context.Context) error {
	if err := b.finish(ctx, b.Jobs); err != nil {
		return err
	}
	start := time.Now()
	if err := b.check(ctx); err != nil {
		return err
	}
	b.result.setRate(time.Since(start), b.Jobs)
	return nil
}

// fill enqueues jobs while no worker runs.
func (b *run) fill(ctx context.Context, jobs int) error {
	_, err := task{To: jobs, Workers: 1, Payload: b.Payload}.enqueue(ctx, b.service, batchSize)
	return err
}

// finish makes jobs that have succeeded.
func (b *run) finish(ctx context.Context, jobs int) error {
	if err := b.fill(ctx, jobs); err != nil {
		return err
	}
	done, err := task{Phase: "drain", Jobs: jobs, Workers: 64}.perform(ctx, b.service)
	if err != nil {
		return err
	}
	after, err := b.snapshot(ctx, 0)
	if err != nil {
		return err
	}
	past := Result{Jobs: jobs}
	return past.setExecutions(done, after.left)
}

// everywhere does a task in all processes of the run. It returns their counts, and when they began. The
// function during, if not nil, runs meanwhile; when it returns, the processes are stopped.
func (b *run) everywhere(
	ctx context.Context, phase string, during func() error,
) (all tally, start time.Time, err error) {
	var processes []*process
	for i := range b.Procs {
		t := task{DB: b.db, Phase: phase, From: b.Jobs * i / b.Procs, To: b.Jobs * (i + 1) / b.Procs, Jobs: b.Jobs,
			Workers: b.Workers, Payload: b.Payload}
		process := t.here(ctx, b.service)
		if b.Procs > 1 {
			var startErr error
			if process, startErr = t.elsewhere(ctx); startErr != nil {
				err = startErr
				break
			}
		}
		processes = append(processes, process)
	}
	start = time.Now()
	begun := 0
	for ; err == nil && begun < len(processes); begun++ {
		err = processes[begun].begin()
	}
	if err == nil && during != nil {
		err = during()
	}
	for i, process := range processes {
		if err != nil || during != nil {
			process.stop()
		}
		if i >= begun && b.Procs == 1 {
			continue // it has not begun, so it would never end
		}
		done, endErr := process.end()
		if err == nil {
			err = endErr
		}
		all.add(done)
	}
	return all, start, err
}
