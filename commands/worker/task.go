package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"jobledger/projection"
)

// task is one claimed job while it is worked on.
type task struct {
	ctx    context.Context // ends when the work must stop, with the cause
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	job      projection.Job
	lease    leaseDeadlines
	timer    *time.Timer // ends ctx when the lease was not renewed in time
	extended func(leaseDeadlines)

	took time.Duration // how long the work ran; known when it has ended
	beat time.Time     // when the next heartbeat is due; only the worker's own goroutine looks
}

// newTask takes job, which was asked for at the moment asked.
func newTask(ctx context.Context, job projection.Job, asked time.Time) *task {
	t := &task{job: job}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.lease = deadlinesOf(job, asked)
	t.timer = time.AfterFunc(time.Until(t.lease.Term), func() { t.cancel(ErrNotRenewed) })
	t.beat = asked.Add(lengthOf(job) / 3)
	return t
}

// lengthOf is how long the lease holds without a heartbeat, by the ledger's own reckoning: it may be shorter than
// what was asked for, where the max runtime ends it.
func lengthOf(job projection.Job) time.Duration { return job.LeaseUntil.Sub(job.HeartbeatAt) }

// deadlinesOf are the instants at which the work must have stopped if the lease is not renewed. They count from
// before the ledger was asked, so they come before the lease's end as the ledger sees it.
func deadlinesOf(job projection.Job, asked time.Time) leaseDeadlines {
	length := lengthOf(job)
	return leaseDeadlines{Term: asked.Add(length * 2 / 3), Kill: asked.Add(length)}
}

// renewed takes the job as it is after a heartbeat that was asked for at the moment asked.
func (t *task) renewed(job projection.Job, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job, t.lease = job, deadlinesOf(job, asked)
	t.beat = asked.Add(lengthOf(job) / 3)
	if t.extended != nil {
		t.extended(t.lease)
	} else {
		t.timer.Reset(time.Until(t.lease.Term))
	}
}

// onExtend leaves the deadlines to f: a supervising parent holds them better than this process.
func (t *task) onExtend(f func(leaseDeadlines)) {
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

func (t *task) deadlines() leaseDeadlines {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease
}

// start starts the task's command. A stopping worker does not break that off, which would kill what has begun: it asks
// the command to end once it runs. A lost claim does.
func (t *task) start(spec childSpec) (*child, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.ctx))
	defer cancel(nil)
	stop := context.AfterFunc(t.ctx, func() {
		if cause := context.Cause(t.ctx); !errors.Is(cause, ErrStopping) {
			cancel(cause)
		}
	})
	defer stop()
	return startChild(ctx, spec)
}

// over releases what the task holds.
func (t *task) over() {
	t.timer.Stop()
	t.cancel(context.Canceled)
}
