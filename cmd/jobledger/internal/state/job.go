package state

import (
	"context"
	"slices"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Job is a job with its payload and result, and what happened to it.
type Job struct {
	projection.Job
	Events []event.Event
	Later  event.State // as of a moment: what has become of it; else 0

	PayloadGone, ResultGone BodyGone // why these are not there; zero: they are, or there never was one
}

// BodyGone says why a payload or a result is not there any more.
type BodyGone struct {
	Why   string // GoneErased or GoneArchived; "": nothing is known to be gone
	Bytes int64  // how many it had
}

// Size is how many bytes it had, as text.
func (g BodyGone) Size() string { return words.Count(g.Bytes, "byte") }

// Why a payload or a result is not there.
const (
	GoneErased   = "erased"
	GoneArchived = "archived" // it left the ledger with its job
)

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

// Cost is what the last attempt with a known cost used.
func (j Job) Cost() (last event.Cost) {
	for _, e := range j.Events {
		if c, ok := event.CostOf(e.Body); ok {
			last = c
		}
	}
	return last
}

// AfterMaxRuntime reports whether the job has succeeded beyond the max runtime of its attempt.
func (j Job) AfterMaxRuntime() bool {
	for _, e := range slices.Backward(j.Events) {
		if b, ok := e.Body.(*event.Succeeded); ok && j.State == event.SucceededState {
			return b.AfterMaxRuntime
		}
	}
	return false
}

// LostOutput reports whether the command of the last attempt that ended wrote something of which its worker
// could keep nothing.
func (j Job) LostOutput() (lost bool) {
	for _, e := range j.Events {
		switch e.Body.(type) {
		case *event.Succeeded, *event.Failed, *event.Released:
			o := logs.OutputOf(e)
			lost = attemptlog.StreamOf(o, false).Lost(j.Salt) || attemptlog.StreamOf(o, true).Lost(j.Salt)
		}
	}
	return lost
}

// ReadJob returns the job now whole, or what it was at a moment, unless that is nil: then without a state if
// it did not exist yet. What has been erased since is gone.
func ReadJob(ctx context.Context, tx *ledger.Tx, now projection.Job, at *projection.Moment) (j Job,
	err error) {
	if at == nil {
		var h query.Happened
		h, err = query.History{Job: now.N}.Read(ctx, tx)
		j.Job, j.Events = now, h.Events
	} else {
		j.Job, j.Events, err = projection.JobAsOf(ctx, tx, now.N, *at)
		j.Later, j.Erased = now.State, now.Erased
	}
	if err != nil {
		return j, err
	}
	if j.State == 0 {
		j.ID = now.ID
		return j, nil
	}
	if err := projection.LoadBodies(ctx, tx, &j.Job); err != nil {
		return j, err
	}
	m := projection.Now(tx.Now())
	if at != nil {
		m = *at
	}
	if err := j.findSurvivor(ctx, tx, m); err != nil {
		return j, err
	}
	return j, j.findGone(ctx, tx)
}

// findSurvivor says which process of the job's last claim outlives it, at m.
func (j *Job) findSurvivor(ctx context.Context, tx *ledger.Tx, m projection.Moment) error {
	survived := func(e event.Event) bool { return e.Kind() == event.KindSurvived }
	if j.State.Held() || !slices.ContainsFunc(j.Events, survived) {
		return nil
	}
	lost, ok, err := projection.LastLostClaim(ctx, tx, j.Job, m)
	if ok {
		j.CannotEnd = lost.CannotEnd
	}
	return err
}

// findGone says why the payload or the result of the job is not there, by its events.
func (j *Job) findGone(ctx context.Context, tx *ledger.Tx) (err error) {
	for _, e := range j.Events {
		switch b := e.Body.(type) {
		case *event.Enqueued:
			j.PayloadGone, err = j.gone(ctx, tx, e, j.Payload, b.PayloadBytes)
		case *event.Replaced:
			j.PayloadGone, err = j.gone(ctx, tx, e, j.Payload, b.PayloadBytes)
		case *event.Succeeded:
			if j.ResultGone = (BodyGone{}); b.ResultSHA256 != "" && e.Seq == j.Seq {
				j.ResultGone, err = j.gone(ctx, tx, e, j.Result, b.ResultBytes)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gone says why the body of e is not there, if it is not.
func (j *Job) gone(ctx context.Context, tx *ledger.Tx, e event.Event, body []byte, bytes int64) (
	BodyGone, error) {
	switch {
	case j.Erased:
		return BodyGone{GoneErased, bytes}, nil
	case body != nil:
		return BodyGone{}, nil
	}
	left, err := tx.BodyLeft(ctx, e.N, e.Pos)
	if err != nil || !left {
		return BodyGone{}, err
	}
	return BodyGone{GoneArchived, bytes}, nil
}
