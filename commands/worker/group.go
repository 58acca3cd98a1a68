package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// group is what one transaction writes for the jobs of this worker: their ends, then heartbeats.
type group struct {
	ops   []commands.Op
	tasks []*task   // of the op with the same index
	ends  int       // the ops before this index record ends
	asked time.Time // before the transaction; leases count from here
}

func (g *group) add(t *task, c commands.Command) {
	g.ops, g.tasks = append(g.ops, commands.Op{Job: t.current(), Command: c}), append(g.tasks, t)
}

// nextGroup collects the ends that have arrived and the heartbeats that are due, or almost due.
func (l *loop) nextGroup() group {
	g := group{ops: make([]commands.Op, 0, len(l.ends)), tasks: make([]*task, 0, len(l.ends)), asked: time.Now()}
	if l.fatal != nil {
		return g
	}
	for _, e := range l.ends {
		if e.command != nil {
			g.add(e.task, e.command)
		}
	}
	g.ends = len(g.ops)
	for t := range l.active {
		if t.beatDue(g.asked, l.Lease) {
			g.add(t, t.heartbeat(l.Lease))
		}
	}
	return g
}

// writeGroup records what has ended, sends heartbeats for what runs, and claims what there is room for, in
// one transaction.
func (l *loop) writeGroup() {
	g := l.nextGroup()
	free := min(l.free(), commands.MaxClaim)
	asked, again := g.asked, l.claimDue()
	if again { // jobs may have been claimed with these tokens
		free, asked = len(l.unknown), l.unknownAsked
	}
	failpoint.Hit("group-begins")
	results, jobs, err := l.write(g.ops, free, again)
	failpoint.Hit("group-ends")
	if again && errors.Is(err, commands.ErrConflict) { // the claims were reclaimed: their tokens are spent
		l.unknown = nil
		return
	}
	if err != nil {
		if e, ok := errors.AsType[*commands.UnknownClaimError](err); ok {
			l.unknown, l.unknownAsked = e.Tokens, asked
		}
		l.failed(askWrite, err)
		return
	}
	if again {
		l.unknown = nil
	}
	if len(g.ops) > 0 || free > 0 {
		l.answered(askWrite)
	}
	for _, e := range l.ends {
		if e.command == nil || l.fatal != nil {
			l.lost(e.task, e.task.current(), "lost", "cause", context.Cause(e.task.ctx))
		}
		e.task.close()
	}
	l.ends = l.ends[:0]
	for i, r := range results {
		if i < g.ends {
			l.endRecorded(g.tasks[i], g.ops[i].Command, r)
		} else {
			l.beatRecorded(g.tasks[i], g.ops[i].Command, r, g.asked)
		}
	}
	for _, j := range jobs {
		l.start(newTask(l.ctx, j, asked, l.Lease))
	}
	l.poller.claimed(time.Now(), free, len(jobs))
}

// write makes the narrowest call that does it all. again says that the last claim is sent once more.
func (l *loop) write(ops []commands.Op, free int, again bool) ([]commands.Result, []projection.Job, error) {
	ctx, actor := context.WithoutCancel(l.ctx), "worker:"+l.Process.Name
	if free > 0 {
		r := l.request(free)
		if again {
			r.Tokens = l.unknown
		}
		return l.backend.ApplyAndClaim(ctx, actor, ops, r)
	}
	if len(ops) == 0 {
		return nil, nil, nil
	}
	results, err := l.backend.ApplyBatch(ctx, actor, ops)
	return results, nil, err
}

func (l *loop) request(limit int) commands.ClaimRequest {
	return commands.ClaimRequest{
		Queues: l.Queues, Version: l.Process.Version, Capabilities: l.Capabilities, Worker: l.Process,
		Lease: l.Lease, MaxRuntime: l.MaxRuntime, Limit: limit,
	}
}

// endRecorded takes in what the ledger answered to the end of a task.
func (l *loop) endRecorded(t *task, c commands.Command, r commands.Result) {
	before, after := t.current(), r.Job
	if _, ok := c.(commands.ReportStop); ok {
		if r.Err != nil {
			l.debug("end of the command not recorded", t, &before, "error", r.Err)
			after = before
		}
		if t.refused != nil {
			l.lost(t, after, "end refused", "error", t.refused)
			return
		}
		l.lost(t, after, "lost", "cause", context.Cause(t.ctx))
		return
	}
	switch {
	case errors.Is(r.Err, commands.ErrCancelled), errors.Is(r.Err, commands.ErrLeaseLost):
		t.refused = r.Err // the claim was lost before the work ended; say that it has ended now
		l.ends = append(l.ends, taskEnd{t, stopOf(c), t.took})
	case r.Err != nil:
		l.lost(t, before, "end refused", "error", r.Err)
	case after.State == event.SucceededState:
		if s, _ := c.(commands.Succeed); s.AfterMaxRuntime {
			l.log.Warn("succeeded after its max runtime", t.logged(before)...)
		} else {
			l.debug("succeeded", t, &before)
		}
		l.report(t, after, Succeeded)
	case after.State == event.CancelledState: // as the Handler asked
		cancel, _ := c.(commands.Cancel)
		l.log.Info("cancelled", t.logged(before, "reason", cancel.Reason)...)
		l.report(t, after, Cancelled)
	case after.Failures > before.Failures: // also a job that was snoozed too often
		attributes := t.logged(before, "code", after.ErrorCode, "state", after.State.String())
		if after.State == event.Queued { // else it is not retried
			attributes = append(attributes, "retry_at", after.RunAt)
		}
		l.log.Warn("failed", attributes...)
		l.report(t, after, Failed)
	default:
		release, _ := c.(commands.Release)
		l.log.Info("released", t.logged(before, "reason", release.Reason)...)
		l.report(t, after, Released)
	}
}

// lost logs and reports a claim that was lost, with the job after that. key is the name of its cause in the
// log.
func (l *loop) lost(t *task, after projection.Job, message, key string, cause error) {
	l.lostCause = cause
	how := Lost
	if errors.Is(cause, commands.ErrCancelled) {
		how, message = Cancelled, "cancelled"
	}
	l.log.Warn(message, t.logged(after, key, cause)...)
	l.report(t, after, how)
}

// beatRecorded takes in what the ledger answered to a heartbeat. A refused one means that the claim is over:
// the task must stop at once, and sends no more heartbeats, except that its command survives a cancel.
func (l *loop) beatRecorded(t *task, c commands.Command, r commands.Result, asked time.Time) {
	if r.Err == nil {
		beat, _ := c.(commands.Heartbeat)
		t.sent(beat, asked)
		t.renewed(r.Job, asked)
		t.stuckness.quiet = t.stuckNote != ""
		return
	}
	cause := error(commands.ErrCancelled)
	if !errors.Is(r.Err, commands.ErrCancelled) {
		cause = fmt.Errorf("%w: %w", commands.ErrLeaseLost, r.Err)
	}
	t.cancel(cause)
	t.nextBeat, t.over, t.firstBeat = asked.Add(commands.MaxLease), true, time.Time{}
	if beat, ok := c.(commands.Heartbeat); ok && errors.Is(r.Err, commands.ErrCancelled) {
		t.survives(beat, asked)
	}
}
