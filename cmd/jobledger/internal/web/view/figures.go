package view

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/inbox"
	"jobledger/projection/query"
	"jobledger/projection/schedules"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// Limits of what the overview lists.
const (
	actsShown = 8
	actsBack  = 24 * time.Hour
)

// Figures are the numbers of the metrics and the overview of a ledger, all of one snapshot.
type Figures struct {
	Pos     int64 // of the last event
	Last    event.Event
	Queues  []status.Queue
	Workers []status.Worker
	Overdue int64 // leases

	Schedules int64 // how many there are

	Problems []verdict.Problem // what is not well
	Setup    status.Setup      // of the queues

	Inbox inbox.Counts // of metrics only

	// What follows is of the overview only.
	Paces map[string]*Pace    // by queue
	Hour  query.Span          // the last one
	Codes query.FailureGroups // of that hour, by cause
	Acts  query.ActList
}

// ReadFigures reads them as of now.
func ReadFigures(ctx context.Context, tx *ledger.Tx, now time.Time) (f Figures, err error) {
	if f.Pos, err = tx.Tail(ctx); err != nil || f.Pos == 0 {
		return f, err
	}
	if f.Last, _, err = tx.OneEvent(ctx, ledger.Filter{Last: true}); err != nil {
		return f, err
	}
	if f.Queues, f.Workers, err = (status.Both{At: projection.Now(now)}).Read(ctx, tx); err != nil {
		return f, err
	}
	for _, q := range f.Queues {
		f.Overdue += q.Overdue
	}
	if f.Setup, err = status.SetupOf(ctx, tx, projection.Now(now), f.Queues, f.Workers); err != nil {
		return f, err
	}
	f.Schedules, err = schedules.Count(ctx, tx)
	return f, err
}

// ReadFiguresAsOf reads what the overview shows of m.
func ReadFiguresAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (f Figures, err error) {
	f.Pos = m.Pos
	if f.Queues, f.Workers, err = (status.Both{At: m}).Read(ctx, tx); err != nil || m.Pos == 0 {
		return f, err
	}
	if f.Last, _, err = tx.OneEvent(ctx, ledger.Filter{Until: m.Pos, Last: true}); err != nil {
		return f, err
	}
	if f.Setup, err = status.SetupOf(ctx, tx, m, f.Queues, f.Workers); err != nil {
		return f, err
	}
	minutes := new(Minutes)
	if err := f.addProblems(ctx, tx, minutes, m); err != nil {
		return f, err
	}
	return f, f.addCourse(ctx, tx, minutes, m.At)
}

// addProblems adds what the rules find at m, which f.Pos is about.
func (f *Figures) addProblems(ctx context.Context, tx *ledger.Tx, minutes *Minutes, m projection.Moment) (
	err error) {
	q := query.Problems{At: m, Queues: f.Queues, Workers: f.Workers}
	if f.Pos > 0 {
		minutes.mu.Lock()
		defer minutes.mu.Unlock()
		if err = minutes.refresh(ctx, tx, f.Pos, m.At); err != nil {
			return err
		}
		q.Recent = minutes.recent
	}
	f.Problems, err = q.Read(ctx, tx)
	return err
}

// addCourse adds what went on up to f.Pos, at now.
func (f *Figures) addCourse(ctx context.Context, tx *ledger.Tx, minutes *Minutes, now time.Time) (err error) {
	minutes.mu.Lock()
	defer minutes.mu.Unlock()
	if f.Pos == 0 {
		return nil
	}
	if err := minutes.refresh(ctx, tx, f.Pos, now); err != nil {
		return err
	}
	f.Paces = minutes.paces(f.Queues, now)
	span := query.Span{To: projection.Moment{Pos: f.Pos, At: now}}
	if span.From.Pos, err = tx.PosAt(ctx, now.Add(-time.Hour)); err != nil {
		return err
	}
	f.Hour, f.Hour.From.At = span, now.Add(-time.Hour)
	if f.Codes, err = (query.Failures{Span: f.Hour, By: query.ByCause}).Read(ctx, tx); err != nil {
		return err
	}
	if span.From.Pos, err = tx.PosAt(ctx, now.Add(-actsBack)); err == nil {
		f.Acts, err = query.Acts{Span: span, Limit: actsShown}.Read(ctx, tx)
	}
	return err
}
