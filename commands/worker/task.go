package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/projection"
)

// task is one claimed job while it is worked on.
type task struct {
	ctx    context.Context // ends when the work must stop, with the cause
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	job      projection.Job
	lease    child.Deadlines
	timer    *time.Timer // ends ctx when the lease was not renewed in time
	extended func(child.Deadlines)

	asks     time.Duration // how long a lease its claim and its beats ask for
	took     time.Duration // how long the work ran; known when it has ended
	nextBeat time.Time     // when the next heartbeat is due; only the worker's own goroutine looks
}

// newTask takes job, which was asked for at the moment asked, with such a lease.
func newTask(ctx context.Context, job projection.Job, asked time.Time, lease time.Duration) *task {
	t := &task{job: job, asks: lease}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.lease = t.deadlinesOf(job, asked)
	t.timer = time.AfterFunc(time.Until(t.lease.Term), func() { t.cancel(ErrNotRenewed) })
	t.nextBeat = asked.Add(t.lengthOf(job) / 3)
	return t
}

// lengthOf is how long the lease holds without a heartbeat, by the ledger's own reckoning, and so the sweeper's: it may
// be shorter than what was asked for, where the max runtime ends it or the clock was set back, since HeartbeatAt runs
// ahead of such a clock (I7). Set back so far that nothing is left, nobody knows; the sweeper takes the default then.
func (t *task) lengthOf(job projection.Job) time.Duration {
	length := job.LeaseUntil.Sub(job.HeartbeatAt)
	ends := !job.EndBy.IsZero() && job.LeaseUntil.After(job.EndBy) // with the max runtime
	if length < commands.MinLease && !ends {
		return min(t.asks, commands.DefaultLease)
	}
	return length
}

// deadlinesOf are the instants at which the work must have stopped if the lease is not renewed. They count from
// before the ledger was asked, so they come before the lease's end as the ledger sees it.
func (t *task) deadlinesOf(job projection.Job, asked time.Time) child.Deadlines {
	length := t.lengthOf(job)
	return child.Deadlines{Term: asked.Add(length * 2 / 3), Kill: asked.Add(length)}
}

// renewed takes the job as it is after a heartbeat that was asked for at the moment asked.
func (t *task) renewed(job projection.Job, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job, t.lease = job, t.deadlinesOf(job, asked)
	t.nextBeat = asked.Add(t.lengthOf(job) / 3)
	if t.extended != nil {
		t.extended(t.lease)
	} else {
		t.timer.Reset(time.Until(t.lease.Term))
	}
}

// onExtend leaves the deadlines to f: a supervising parent holds them better than this process.
func (t *task) onExtend(f func(child.Deadlines)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.extended = f
	t.timer.Stop()
	f(t.lease)
}

func (t *task) current() projection.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.job
}

func (t *task) deadlines() child.Deadlines {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease
}

// start starts the task's command. A stopping worker does not break that off, which would kill what has begun: it asks
// the command to end once it runs. A lost claim does.
func (t *task) start(spec child.Spec) (*child.Process, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.ctx))
	defer cancel(nil)
	stop := context.AfterFunc(t.ctx, func() {
		if cause := context.Cause(t.ctx); !errors.Is(cause, ErrStopping) {
			cancel(cause)
		}
	})
	defer stop()
	c, err := child.Start(ctx, spec)
	if errors.Is(err, child.ErrLate) {
		t.cancel(ErrNotRenewed)
	}
	return c, err
}

// close releases what the task holds.
func (t *task) close() {
	t.timer.Stop()
	t.cancel(context.Canceled)
}
