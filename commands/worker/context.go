package worker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// taskKey is the key of the task in a Handler's context.
type taskKey struct{}

// ErrNoJob is the error of [Progress] for a context that is not that of a Handler.
var ErrNoJob = errors.New("worker: the context is not that of a handler")

// JobOf returns the job of a Handler's context, or of one derived from it, as it is now: its ID, its Token,
// and the end of its lease after the last heartbeat. ok is false for any other context.
func JobOf(ctx context.Context) (job projection.Job, ok bool) {
	t, ok := ctx.Value(taskKey{}).(*task)
	if !ok {
		return projection.Job{}, false
	}
	return t.current(), true
}

// reportEvery is the shortest time between two heartbeats that report progress of the same job.
const reportEvery = time.Second

// Progress reports how far the work on the job of ctx has come: fraction is 0 to 1, note up to 1 KiB. The
// worker sends it with a heartbeat at once, and at most once in a second; of several reports in that time the
// last one is sent. What was not sent when the work ends is left out. Progress does not wait for the ledger.
//
// Errors: [ErrNoJob]; [commands.ErrInvalid] for a fraction or note that is not allowed; the cause of the
// context if it has ended, so that a loop that returns this error stops in time.
func Progress(ctx context.Context, fraction float64, note string) error {
	t, ok := ctx.Value(taskKey{}).(*task)
	switch {
	case !ok:
		return ErrNoJob
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	beat := commands.Heartbeat{Token: t.current().Token, Lease: t.requested, Progress: &fraction, Note: note}
	if err := commands.CheckCommand(beat); err != nil {
		return err
	}
	t.mu.Lock()
	t.progress = &beat
	t.mu.Unlock()
	select {
	case t.reported <- struct{}{}:
	default: // the loop is about to look
	}
	return nil
}

// heartbeat returns the heartbeat that is sent next, with the progress that was not yet sent.
func (t *task) heartbeat(lease time.Duration) commands.Heartbeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	beat := commands.Heartbeat{Token: t.job.Token, Lease: lease, CannotEnd: t.stuck}
	if t.progress != nil {
		beat.Progress, beat.Note = t.progress.Progress, t.progress.Note
	}
	beat.Note = cmp.Or(t.stuckNote, beat.Note)
	return beat
}

// sent takes in that a heartbeat was recorded that was asked for at this time.
func (t *task) sent(beat commands.Heartbeat, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stuckSent = beat.CannotEnd
	if beat.Progress == nil {
		return
	}
	t.reportAt = asked.Add(reportEvery)
	if t.progress != nil && t.progress.Progress == beat.Progress { // else there is a newer report
		t.progress = nil
	}
}

// reports reports whether there is progress to send, and from when on it may be sent.
func (t *task) reports() (from time.Time, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stuck != t.stuckSent && (!t.over || t.cancelled && t.stuck != "") {
		return time.Time{}, true
	}
	return t.reportAt, t.progress != nil && !t.over
}

// setCannotEnd takes in which process of the command cannot be ended, and why; "": none any more.
func (t *task) setCannotEnd(why string) {
	t.mu.Lock()
	t.stuck = why
	t.mu.Unlock()
	for _, wake := range []chan<- struct{}{t.stuckChanged, t.reported} {
		select {
		case wake <- struct{}{}:
		default: // it is about to look
		}
	}
}

// cannotEnd returns which process of the command cannot be ended, and why; "": none.
func (t *task) cannotEnd() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stuck
}
