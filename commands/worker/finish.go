package worker

import (
	"context"
	"time"

	"jobledger/projection"
)

// Finish works on one job that this process holds already, with its token and payload, as Run would on one that it
// claims, and returns the job as it is then. asked is a time before the claim or its last heartbeat was asked for: the
// lease counts from there. It claims nothing, sweeps nothing, and does not tell the ledger of a worker that starts.
// When ctx ends, the work is stopped and the job released.
//
// why tells of a Lost claim: commands.ErrCancelled, commands.ErrLeaseLost or ErrNotRenewed, possibly wrapped. err is as
// Run's; a command that cannot be run has released the job.
func (w *Worker) Finish(ctx context.Context, job projection.Job, asked time.Time) (after projection.Job, how Ending, why, err error) {
	l, err := w.newLoop(ctx)
	if err != nil {
		return job, Lost, nil, err
	}
	told := w.Hooks.Ended
	w.Hooks.Ended = func(j projection.Job, ending Ending, took time.Duration) {
		after, how = j, ending
		if told != nil {
			told(j, ending, took)
		}
	}
	l.stopped, l.unannounced = true, true
	l.start(newTask(l.ctx, job, asked, l.Lease))
	err = l.run(ctx)
	return after, how, l.lostCause, err
}
