package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/projection"
)

// task is one claimed job and the work on it.
type task struct {
	ctx    context.Context // ends when the work must stop, with the reason as its cause
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	job      projection.Job
	lease    child.Deadlines
	timer    *time.Timer           // ends ctx when the lease is not renewed in time
	extended func(child.Deadlines) // see onExtend; nil: the timer holds the deadline
	progress *commands.Heartbeat   // reported by the Handler and not yet sent; nil: none
	reportAt time.Time             // when progress may be sent

	stuck     string // which process of its command cannot be ended, and why; "": none
	stuckSent string // what the last heartbeat said of that

	stopAsked time.Time // when ctx ended while a Handler ran; zero: it has not

	stuckChanged chan struct{}   // has room for one
	reported     chan<- struct{} // wakes the loop

	requested time.Duration // the length of the lease that claims and heartbeats ask for
	exitCode  *int          // of its command, likewise; nil: it was killed, or there was none
	signal    string        // that killed its command, likewise; "": none
	runs      atomic.Bool   // its command has begun

	// Used by the goroutine of the loop only:
	began     time.Time     // the work
	took      time.Duration // how long the work ran; known when it has ended
	stuckness stuckness
	stuckNote string    // what the last heartbeat says of a Handler that does not stop; "": it is not the last
	nextBeat  time.Time // when the next heartbeat is due
	firstBeat time.Time // when one is due before that because the command has begun; zero: not
	over      bool      // a heartbeat was refused
	cancelled bool      // because the job was cancelled
	refused   error     // why its end was; nil: it was not
}

// newTask returns the task of a job that was requested at the time asked, with a lease of that length.
func newTask(ctx context.Context, job projection.Job, asked time.Time, lease time.Duration) *task {
	t := &task{job: job, requested: lease, stuckChanged: make(chan struct{}, 1)}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.lease = t.deadlinesOf(job, asked)
	t.timer = time.AfterFunc(time.Until(t.lease.Term), func() { t.cancel(ErrNotRenewed) })
	t.nextBeat = asked.Add(t.leaseOf(job) / 3)
	return t
}

// leaseOf returns how long the lease holds without a heartbeat, as the ledger and the sweeper compute it. It
// is shorter than requested if the maximum runtime ends it, or if the clock was set back, since HeartbeatAt
// is then ahead of the clock (I7). If the clock was set back so far that no lease is left, the sweeper
// assumes the default length.
func (t *task) leaseOf(job projection.Job) time.Duration {
	length := job.LeaseUntil.Sub(job.HeartbeatAt)
	cut := !job.EndBy.IsZero() && job.LeaseUntil.After(job.EndBy) // by the maximum runtime
	if length < commands.MinLease && !cut {
		return min(t.requested, commands.DefaultLease)
	}
	return length
}

// deadlinesOf returns when the work must have stopped if the lease is not renewed. The deadlines count from
// before the request, so they come before the lease expires in the ledger.
func (t *task) deadlinesOf(job projection.Job, asked time.Time) child.Deadlines {
	length := t.leaseOf(job)
	return child.Deadlines{Term: asked.Add(length * 2 / 3), Kill: asked.Add(length)}
}

// renewed takes in the job after a heartbeat that was requested at the time asked.
func (t *task) renewed(job projection.Job, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job, t.lease = job, t.deadlinesOf(job, asked)
	t.nextBeat, t.firstBeat = asked.Add(t.leaseOf(job)/3), time.Time{}
	if t.extended != nil {
		t.extended(t.lease)
	} else {
		t.timer.Reset(time.Until(t.lease.Term))
	}
}

// firstBeatDelay is how long after its claim a job is reported as running. From half of that time on, the
// report goes with any group that is written anyway, so that short commands need no heartbeat.
const firstBeatDelay = 200 * time.Millisecond

// survives takes in that the job was cancelled, which a heartbeat has found at the time asked. A heartbeat
// that says that the command cannot be ended is repeated as long as that is true.
func (t *task) survives(beat commands.Heartbeat, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelled, t.stuckSent = true, beat.CannotEnd
	if beat.CannotEnd == "" {
		return
	}
	t.nextBeat = asked.Add(t.requested / 3)
	t.lease = child.Deadlines{Term: asked.Add(t.requested * 2 / 3), Kill: asked.Add(t.requested)}
	if t.extended != nil {
		t.extended(t.lease)
	}
}

// beatAt returns when to send a heartbeat.
func (t *task) beatAt() time.Time {
	at := t.nextBeat
	if t.stuckness.quiet {
		return time.Now().Add(commands.MaxLease)
	}
	if !t.firstBeat.IsZero() && t.firstBeat.Before(at) {
		at = t.firstBeat
	}
	if from, some := t.reports(); some && from.Before(at) {
		at = from
	}
	return at
}

// beatDue reports whether a group that is written now takes a heartbeat along, of a worker whose leases are
// so long.
func (t *task) beatDue(now time.Time, lease time.Duration) bool {
	if t.stuckness.quiet {
		return false
	}
	from, some := t.reports()
	return !now.Add(lease/12).Before(t.nextBeat) || t.firstBeatDue(now) || some && !now.Before(from)
}

// postponeFirstBeat waits for a command that has not begun.
func (t *task) postponeFirstBeat(now time.Time) {
	if !t.firstBeat.IsZero() && !now.Before(t.firstBeat) && !t.runs.Load() {
		t.firstBeat = now.Add(firstBeatDelay)
	}
}

// firstBeatDue reports whether a group that is written now takes the first heartbeat along.
func (t *task) firstBeatDue(now time.Time) bool {
	return !t.firstBeat.IsZero() && t.runs.Load() && !now.Add(firstBeatDelay/2).Before(t.firstBeat)
}

// onExtend passes the deadlines, now and after each renewal, to f instead of the timer: a supervising parent
// enforces them even if this process freezes.
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

// start starts the task's command. A lost claim aborts the start. A stopping worker and a cancel do not,
// because that would kill a command that runs already: they ask it to end once its start is known. A job that
// was cancelled before is not started.
func (t *task) start(spec child.Spec) (*child.Process, error) {
	if cause := context.Cause(t.ctx); errors.Is(cause, commands.ErrCancelled) {
		return nil, fmt.Errorf("start child: %w", cause)
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.ctx))
	defer cancel(nil)
	stop := context.AfterFunc(t.ctx, func() {
		cause := context.Cause(t.ctx)
		if !errors.Is(cause, ErrStopping) && !errors.Is(cause, commands.ErrCancelled) {
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

// close releases the resources of the task.
func (t *task) close() {
	t.timer.Stop()
	t.cancel(context.Canceled)
}
