// Package journal is the one write path: every event, with the rows that it changes, goes through [Record].
//
//   - record.go: [Fact], an event about to be recorded, and Record
//   - differ.go: what an edit changes, and whether a job is the one asked for; sealing.go: how sealing begins
//   - delay.go: what is not to begin before the command of a job that was cancelled has ended
//   - unblock_dependents.go: what an event means for the jobs that wait for its job
//
// Held by TestTransitions, TestRecordAloneAppends, TestDependenciesOfAnyGraph and TestSurvivedCommandHolds
// of package commands.
package journal

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
	"jobledger/projection/deps"
	"jobledger/projection/ends"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
)

// Fact is one event about to be recorded, with what it changes.
type Fact struct {
	Actor string
	Body  event.Body
	Job   projection.Job   // as it is before the event; of a new job only the id; zero where no job is concerned
	Queue projection.Queue // as it is before the event, of a pause or a resume
	Edges []deps.Edge      // of a new job, which is its number Self

	// Delays are those of a new job, without its number.
	Delays []ends.Delay

	wave *wave // of an event that another job's brought about; nil: none did

	// Schedule is the event's schedule before the event; nil if the event is not about a schedule.
	Schedule *schedules.Schedule

	// Worker and Token belong to a claim that begins, a refused write or a command that stopped; Attempt belongs
	// to the latter two. A worker process that comes, goes or takes over is named by Worker. Everything else is
	// recorded with the live claim of Job.
	Worker  event.Worker
	Token   string
	Attempt int

	Salt    []byte // of a new job's digests
	Content []byte // stored with the event: a payload, or a result; nil: none
}

// Record is the one function through which rows and events change (I6): it asks projection what the event
// means, writes the row, then the event (I4), then its content. It returns the job as it is after that.
func Record(ctx context.Context, tx *ledger.Tx, f Fact) (projection.Job, error) {
	if erased, ok := f.Body.(*event.Erased); ok {
		var err error
		if erased.Bodies, erased.Bytes, err = tx.EraseBodies(ctx, f.Job.N); err != nil {
			return f.Job, err
		}
	}
	e, after, err := f.Envelope(tx.Next(), tx.At())
	if err != nil {
		return f.Job, err
	}
	if err := putRow(ctx, tx, f, e, after); err != nil {
		return f.Job, err
	}
	if err := tx.Append(ctx, e); err != nil {
		return after, err
	}
	if b, ok := f.Body.(*event.Archived); ok {
		if err := projection.AddSegment(tx, b, e.Pos); err != nil {
			return after, err
		}
	}
	if b, ok := f.Body.(*event.ArchiveDescribed); ok && len(b.Left) > 0 {
		var named projection.Departed
		named.Name(b.Left)
		if err := projection.Depart(ctx, tx, named); err != nil {
			return after, err
		}
	}
	if f.Salt != nil || f.Content != nil {
		if err := tx.PutBody(e.Pos, f.Salt, f.Content); err != nil {
			return after, err
		}
	}
	if err := follow(ctx, tx, f, e, after); err != nil {
		return after, err
	}
	return endings(ctx, tx, f, e, after)
}

// endings updates the tables of commands that run on after their job has ended, and of jobs that must not
// begin before these stop, as e requires.
func endings(ctx context.Context, tx *ledger.Tx, f Fact, e event.Event, after projection.Job) (projection.Job,
	error) {
	switch b := e.Body.(type) {
	case *event.Cancelled:
		if e.Attempt > 0 {
			return after, ends.Begin(tx, f.Job, e.At)
		}
	case *event.Stopped:
		if err := ends.Stopped(tx, e.N, e.Attempt); err != nil || e.Attempt != f.Job.Attempt {
			return after, err
		}
		tx.Announce() // a slot of its queue may be free
		return after, liftDelays(ctx, tx, f.Actor, after)
	case *event.Survived:
		return after, extend(ctx, tx, f.Actor, after)
	case *event.Retried:
		if event.RunOf(after.Requires) != "" { // the run that it waited for is over
			return Record(ctx, tx, Fact{Actor: f.Actor, Job: after,
				Body: &event.Edited{Requires: event.WithoutRun(after.Requires), Reason: b.Reason}})
		}
	case *event.Unblocked:
		if !b.Blocked {
			return delayQueued(ctx, tx, f.Actor, after)
		}
	case *event.Enqueued:
		for _, d := range f.Delays {
			d.Child = e.N
			if err := d.Add(tx); err != nil {
				return after, err
			}
		}
	}
	return after, nil
}

// Envelope returns the event of f, complete, and the job after it. It is pure.
func (f Fact) Envelope(pos int64, at time.Time) (e event.Event, after projection.Job, err error) {
	j := f.Job
	e = event.Event{Pos: pos, Job: j.ID, N: j.N, At: at, Actor: f.Actor, Body: f.Body}
	if !e.Kind().OfJob() {
		e.Worker = f.Worker
		return e, j, nil
	}
	switch e.Kind() {
	case event.KindRefused, event.KindStopped, event.KindSurvived:
		e.Worker, e.Token, e.Attempt = f.Worker, f.Token, f.Attempt
	case event.KindErased:
	case event.KindEnqueued:
		e.N, e.Seq = pos, 1
	case event.KindClaimed:
		e.Seq, e.From = j.Seq+1, j.State
		e.Worker, e.Token, e.Attempt = f.Worker, f.Token, j.Attempt+1
	case event.KindTakenOver:
		e.Seq, e.From = j.Seq+1, j.State
		e.Worker, e.Token, e.Attempt = f.Worker, j.Token, j.Attempt
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
	case event.KindEnqueued, event.KindReplaced:
		after.Payload = f.Content
	case event.KindSucceeded:
		after.Result = f.Content
	}
	return e, after, nil
}

// putRow writes the row that e changes: of its job, its queue, or the process that it names.
func putRow(ctx context.Context, tx *ledger.Tx, f Fact, e event.Event, after projection.Job) error {
	if f.Schedule != nil {
		if err := putSchedule(ctx, tx, *f.Schedule, e); err != nil {
			return err
		}
	}
	switch e.Kind() {
	case event.KindQueuePaused, event.KindQueueResumed:
		q, err := projection.EvolveQueue(f.Queue, e)
		if err != nil {
			return err
		}
		if !q.Paused {
			tx.Announce()
		}
		return projection.PutQueue(ctx, tx, q)
	case event.KindQueueLimited:
		before, err := limit.Of(ctx, tx, e.Body.(*event.QueueLimited).Queue)
		if err != nil {
			return err
		}
		l, err := before.Evolve(e)
		if err != nil {
			return err
		}
		tx.Announce()
		return projection.PutLimit(ctx, tx, before, l)
	case event.KindWorkerStarted:
		return projection.PutPresence(tx, e.Worker, tx.Now())
	case event.KindWorkerStopped:
		return projection.EndPresence(tx, e.Worker, tx.Now())
	}
	if !e.Kind().OfJob() { // it says what has been written, or its fold is read from the events, which are few
		return nil
	}
	if e.To == event.Queued || f.Job.Limited && !after.Limited { // a job, or a slot for one
		tx.Announce()
	}
	if e.Attempt > 0 && (e.Kind() == event.KindCancelled || e.Kind() == event.KindReclaimed) {
		tx.AnnounceEnded()
	}
	return claims.Put(ctx, tx, f.Job, after)
}

// putSchedule writes the row of the schedule that e concerns; before is the schedule as it was.
func putSchedule(ctx context.Context, tx *ledger.Tx, before schedules.Schedule, e event.Event) error {
	after, err := schedules.Evolve(before, e)
	switch {
	case err != nil:
		return err
	case !after.Exists():
		return schedules.Remove(tx, before.Spec.Name)
	}
	return schedules.Put(ctx, tx, after)
}
