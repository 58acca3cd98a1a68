package commands

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// fact is one event about to be recorded, with what it changes.
type fact struct {
	actor string
	body  event.Body
	job   projection.Job   // as it is before the event; of a new job only the id; zero where no job is concerned
	queue projection.Queue // as it is before the event, of a pause or a resume

	// worker and token are those of a claim that begins, of a refused write and of a command that stopped,
	// attempt that of the latter two. A worker process that comes, goes or takes over is named by worker.
	// Everything else is recorded with the live claim of job.
	worker  event.Worker
	token   string
	attempt int

	salt    []byte // of a new job's digests
	content []byte // stored with the event: a new job's payload, or a result; nil: none
}

// record is the one function through which rows and events change (I6): it asks projection what the event
// means, writes the row, then the event (I4), then its content. It returns the job as it is after that.
func record(ctx context.Context, tx *ledger.Tx, f fact) (projection.Job, error) {
	if erased, ok := f.body.(*event.Erased); ok {
		var err error
		if erased.Bodies, erased.Bytes, err = tx.EraseBodies(ctx, f.job.N); err != nil {
			return f.job, err
		}
	}
	e, after, err := f.envelope(tx.Next(), tx.At())
	if err != nil {
		return f.job, err
	}
	if err := putRow(ctx, tx, f, e, after); err != nil {
		return f.job, err
	}
	if err := tx.Append(ctx, e); err != nil {
		return after, err
	}
	if f.salt == nil && f.content == nil {
		return after, nil
	}
	return after, tx.PutBody(e.Pos, f.salt, f.content)
}

// envelope returns the event of f, complete, and the job after it. It is pure.
func (f fact) envelope(pos int64, at time.Time) (e event.Event, after projection.Job, err error) {
	j := f.job
	e = event.Event{Pos: pos, Job: j.ID, N: j.N, At: at, Actor: f.actor, Body: f.body}
	switch e.Kind() {
	case event.KindQueuePaused, event.KindQueueResumed, event.KindWorkerStarted, event.KindWorkerStopped,
		event.KindRebuilt, event.KindRestored, event.KindImported:
		e.Worker = f.worker
		return e, j, nil
	case event.KindRefused, event.KindStopped:
		e.Worker, e.Token, e.Attempt = f.worker, f.token, f.attempt
	case event.KindErased:
	case event.KindEnqueued:
		e.N, e.Seq = pos, 1
	case event.KindClaimed:
		e.Seq, e.From = j.Seq+1, j.State
		e.Worker, e.Token, e.Attempt = f.worker, f.token, j.Attempt+1
	case event.KindTakenOver:
		e.Seq, e.From = j.Seq+1, j.State
		e.Worker, e.Token, e.Attempt = f.worker, j.Token, j.Attempt
	default:
		e.Seq, e.From = j.Seq+1, j.State
		if j.State.Held() {
			e.Worker, e.Token, e.Attempt = j.Worker, j.Token, j.Attempt
		}
	}
	if after, err = projection.Evolve(j, e); err != nil {
		return e, j, err
	}
	if e.Seq != 0 {
		e.To = after.State
	}
	switch e.Kind() {
	case event.KindEnqueued:
		after.Payload = f.content
	case event.KindSucceeded:
		after.Result = f.content
	}
	return e, after, nil
}

// putRow writes the row that e changes: of its job, its queue, or the process that it names.
func putRow(ctx context.Context, tx *ledger.Tx, f fact, e event.Event, after projection.Job) error {
	switch e.Kind() {
	case event.KindQueuePaused, event.KindQueueResumed:
		q, err := projection.EvolveQueue(f.queue, e)
		if err != nil {
			return err
		}
		if !q.Paused {
			tx.Announce()
		}
		return projection.PutQueue(ctx, tx, q)
	case event.KindWorkerStarted:
		return projection.PutPresence(tx, e.Worker, tx.Now())
	case event.KindWorkerStopped:
		return projection.EndPresence(tx, e.Worker, tx.Now())
	case event.KindRebuilt, event.KindRestored, event.KindImported:
		return nil // these describe rows that have been written
	}
	if e.To == event.Queued {
		tx.Announce()
	}
	if e.Attempt > 0 && (e.Kind() == event.KindCancelled || e.Kind() == event.KindReclaimed) {
		tx.AnnounceEnded()
	}
	return projection.Put(ctx, tx, f.job, after)
}
