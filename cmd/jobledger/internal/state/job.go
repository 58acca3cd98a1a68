package state

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Job is a job with its payload and result, and what happened to it.
type Job struct {
	projection.Job
	Events []event.Event
	Later  event.State // of [JobAsOf]: what has become of it; else 0
}

// Exit returns how the command of the last failure ended.
func (j Job) Exit() (exit projection.Exit) {
	if j.ErrorCode == "" { // it has succeeded, or was retried, since
		return exit
	}
	for _, e := range j.Events {
		switch b := e.Body.(type) {
		case *event.Failed:
			exit = projection.Exit{Code: b.ExitCode, Signal: b.Signal}
		case *event.Reclaimed:
			exit = projection.Exit{}
		}
	}
	return exit
}

// ReadJob returns j whole.
func ReadJob(ctx context.Context, tx *ledger.Tx, j projection.Job) (Job, error) {
	whole := Job{Job: j}
	if err := projection.LoadBodies(ctx, tx, &whole.Job); err != nil {
		return whole, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N}) {
		if err != nil {
			return whole, err
		}
		whole.Events = append(whole.Events, e)
	}
	return whole, nil
}

// ReadJobAsOf returns what the job now was at m; without a state where it did not exist yet. What has been
// erased since is gone.
func ReadJobAsOf(ctx context.Context, tx *ledger.Tx, now projection.Job, m projection.Moment) (j Job,
	err error) {
	if j.Job, j.Events, err = projection.JobAsOf(ctx, tx, now.N, m); err != nil {
		return j, err
	}
	j.Later, j.Erased = now.State, now.Erased
	if j.State == 0 {
		j.ID = now.ID
		return j, nil
	}
	return j, projection.LoadBodies(ctx, tx, &j.Job)
}
