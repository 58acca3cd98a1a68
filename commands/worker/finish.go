package worker

import (
	"context"
	"strconv"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// Finish works on one job that this process has already claimed, as Run would, and returns the job after its
// end. job must have its token and payload. asked is a time before the claim, or its last heartbeat, was
// requested: the lease is counted from there. Finish claims nothing, reclaims nothing, and does not record
// that a worker started or stopped. When ctx ends, the work is stopped and the job released.
//
// If how is Lost, why says how the claim was lost: [commands.ErrCancelled], [commands.ErrLeaseLost] or
// [ErrNotRenewed], possibly wrapped. err is as for Run. A command that cannot be run has released the job.
func (w *Worker) Finish(ctx context.Context, job projection.Job, asked time.Time) (
	after projection.Job, how Ending, why, err error,
) {
	if job.ID == "" || job.Token == "" || job.Worker.Name == "" {
		return job, "", nil, &commands.InvalidError{Field: "job", Got: strconv.Quote(string(job.ID)),
			Allowed: "a job as Claim returned it, with its token and worker"}
	}
	end, err := w.begin()
	if err != nil {
		return job, "", nil, err
	}
	defer end()
	l, err := w.newLoop(ctx)
	if err != nil {
		return job, Lost, nil, err
	}
	callback := w.Hooks.Ended
	w.Hooks.Ended = func(j projection.Job, ending Ending, took time.Duration) {
		after, how = j, ending
		if callback != nil {
			callback(j, ending, took)
		}
	}
	l.stopped, l.unannounced = true, true
	l.start(newTask(l.ctx, job, asked, l.Lease))
	err = l.run(ctx)
	return after, how, l.lostCause, err
}
