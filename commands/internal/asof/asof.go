// Package asof is how the calls of commands.Service that look back put their questions to package query: what
// a job, a moment or a window that a program names means in its ledger, each answer from one snapshot, and
// events page by page.
//
//	j, err := asof.Asker{Store: store, …}.GetAsOf(ctx, id, query.At(t))
//
// Held by TestPastInOneCall, TestEventsLeaveNothingOpen and TestSubscribeMissesNone of package commands.
package asof

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// subscribePoll is how often a subscription looks for events that nothing announced.
const subscribePoll = 250 * time.Millisecond

// Asker is who is asked: a ledger, and what package commands has that this one cannot import.
type Asker struct {
	Store   *ledger.Store
	NoStore error // what is answered without a Store
	NoJob   error // what is answered of a job that was not there yet
	// Job returns the job with this id as it is now, or a NoJob.
	Job func(ctx context.Context, tx *ledger.Tx, id event.JobID) (projection.Job, error)
}

// Read reads an answer in a snapshot of its own.
func Read[T any](ctx context.Context, s Asker, read func(*ledger.Tx) (T, error)) (answer T, err error) {
	if s.Store == nil {
		return answer, s.NoStore
	}
	return ledger.Read(ctx, s.Store, read)
}

// within asks about a window. read gets what that means in the ledger, of the queue and worker of span.
func within[T any](ctx context.Context, s Asker, w query.Window, span query.Span,
	read func(*ledger.Tx, query.Span) (T, error)) (T, error) {
	return Read(ctx, s, func(tx *ledger.Tx) (answer T, err error) {
		in, err := w.Resolve(ctx, tx, tx.Now())
		if err != nil {
			return answer, err
		}
		in.Queue, in.Worker = span.Queue, span.Worker
		return read(tx, in)
	})
}

// of asks about a job at a moment; nil is now. Errors: NoJob; projection.ErrArchived for a job that may have
// left the ledger, and for a moment before its first events.
func of[T any](ctx context.Context, s Asker, id event.JobID, at *query.When,
	read func(*ledger.Tx, projection.Job, projection.Moment) (T, error)) (T, error) {
	return Read(ctx, s, func(tx *ledger.Tx) (answer T, err error) {
		j, err := s.Job(ctx, tx, id)
		if errors.Is(err, s.NoJob) {
			if left, pastErr := past.MayHaveLeft(ctx, tx, id); left && pastErr == nil {
				err = fmt.Errorf("%w: job %s may have left the ledger", projection.ErrArchived, id)
			}
		}
		if err != nil {
			return answer, err
		}
		p, err := query.ReadPast(ctx, tx, at, tx.Now())
		if err != nil {
			return answer, err
		}
		return read(tx, j, p.Or(tx.Now()))
	})
}

// GetAsOf is that of commands.Service.
func (s Asker) GetAsOf(ctx context.Context, id event.JobID, at *query.When) (projection.Job, error) {
	return of(ctx, s, id, at, func(tx *ledger.Tx, now projection.Job, m projection.Moment) (
		projection.Job, error) {
		j, events, err := projection.JobAsOf(ctx, tx, now.N, m)
		if err == nil && len(events) == 0 {
			err = fmt.Errorf("%w: %s was not enqueued yet", s.NoJob, id)
		}
		if err != nil {
			return j, err
		}
		j.Erased = now.Erased
		return j, projection.LoadBodies(ctx, tx, &j)
	})
}

// OwnerAt is that of commands.Service.
func (s Asker) OwnerAt(ctx context.Context, id event.JobID, at *query.When) (query.Attempt, error) {
	return of(ctx, s, id, at, func(tx *ledger.Tx, j projection.Job, m projection.Moment) (
		query.Attempt, error) {
		_, a, err := query.Owner{Job: j.N, At: m}.Read(ctx, tx)
		return a, err
	})
}

// Why is that of commands.Service.
func (s Asker) Why(ctx context.Context, id event.JobID) (query.Why, error) {
	return of(ctx, s, id, nil, func(tx *ledger.Tx, j projection.Job, m projection.Moment) (query.Why, error) {
		return status.Explain(ctx, tx, j, m)
	})
}

// Attempts is that of commands.Service.
func (s Asker) Attempts(ctx context.Context, w query.Window, q query.Attempts) ([]query.Attempt, error) {
	return within(ctx, s, w, q.Span, func(tx *ledger.Tx, in query.Span) ([]query.Attempt, error) {
		q.Span = in
		return q.Read(ctx, tx)
	})
}

// Waits is that of commands.Service.
func (s Asker) Waits(ctx context.Context, w query.Window, q query.Waits) ([]query.Wait, error) {
	return within(ctx, s, w, q.Span, func(tx *ledger.Tx, in query.Span) ([]query.Wait, error) {
		return query.Waits{Span: in}.Read(ctx, tx)
	})
}

// Failures is that of commands.Service.
func (s Asker) Failures(ctx context.Context, w query.Window, q query.Failures) (query.FailureGroups,
	error) {
	return within(ctx, s, w, q.Span, func(tx *ledger.Tx, in query.Span) (query.FailureGroups, error) {
		q.Span = in
		return q.Read(ctx, tx)
	})
}

// Diff is that of commands.Service.
func (s Asker) Diff(ctx context.Context, from, to *query.When, jobs int) (query.Diff, error) {
	return Read(ctx, s, func(tx *ledger.Tx) (d query.Diff, err error) {
		var moments [2]projection.Moment
		for i, at := range []*query.When{from, to} {
			p, err := query.ReadPast(ctx, tx, at, tx.Now())
			if err != nil {
				return d, err
			}
			moments[i] = p.Or(tx.Now())
		}
		return status.Compare(ctx, tx, moments[0], moments[1], jobs)
	})
}

// ListAsOf is that of commands.Service.
func (s Asker) ListAsOf(ctx context.Context, f projection.Filter, at *query.When) ([]query.Job, error) {
	return Read(ctx, s, func(tx *ledger.Tx) ([]query.Job, error) {
		p, err := query.ReadPast(ctx, tx, at, tx.Now())
		if err != nil {
			return nil, err
		}
		return query.Jobs{Filter: f, At: p.AsOf()}.Read(ctx, tx)
	})
}

// QueuesAsOf is that of commands.Service.
func (s Asker) QueuesAsOf(ctx context.Context, at *query.When) ([]projection.Queue, error) {
	return Read(ctx, s, func(tx *ledger.Tx) ([]projection.Queue, error) {
		p, err := query.ReadPast(ctx, tx, at, tx.Now())
		if err != nil {
			return nil, err
		}
		return query.Queues{At: p.AsOf()}.Read(ctx, tx)
	})
}

// Events is that of commands.Service.
func (s Asker) Events(ctx context.Context, q query.Events) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) { s.events(ctx, q, yield) }
}

// events returns the position up to which all events were yielded; more is false if the caller has stopped,
// or after an error.
func (s Asker) events(ctx context.Context, q query.Events, yield func(event.Event, error) bool) (
	until int64, more bool) {
	f, err := Read(ctx, s, func(tx *ledger.Tx) (ledger.Filter, error) {
		f, err := q.Resolve(ctx, tx, tx.Now())
		if err == nil && f.Until < q.Filter.After && q.To == nil && q.At == nil {
			err = &query.InputError{Field: "from", Reason: fmt.Sprintf("the ledger ends at pos:%d", f.Until)}
		}
		return f, err
	})
	if err != nil {
		return 0, yield(event.Event{}, err) && false
	}
	if f.After >= f.Until {
		return f.Until, true
	}
	for line, err := range s.Store.Lines(ctx, f, false) {
		if !yield(line.Event, err) || err != nil {
			return 0, false
		}
	}
	return f.Until, true
}

// Subscribe is that of commands.Service.
func (s Asker) Subscribe(ctx context.Context, q query.Events, from int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if s.Store == nil {
			yield(event.Event{}, s.NoStore)
			return
		}
		woken, stop := s.Store.Watch()
		defer stop()
		poll := time.NewTicker(subscribePoll)
		defer poll.Stop()
		q.Filter.After, q.To, q.At = max(q.Filter.After, from), nil, nil
		for more := true; more; {
			if q.Filter.After, more = s.events(ctx, q, yield); !more {
				return
			}
			q.Last = 0 // they were yielded
			select {
			case <-ctx.Done():
				yield(event.Event{}, context.Cause(ctx))
				return
			case <-woken:
			case <-poll.C:
			}
		}
	}
}
