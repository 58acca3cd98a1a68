package view

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// overdueSlack is how long after its end a lease counts as overdue, besides its own length; as in doctor.
const overdueSlack = 2 * time.Minute

// Figures are what the metrics and the overview of a ledger are made of, of one snapshot.
type Figures struct {
	Pos     int64 // of the last event
	Last    event.Event
	Queues  []status.Queue
	Workers []status.Worker
	Overdue int64 // leases

	// What follows is of the overview only.
	Paces map[string]*Pace       // by queue
	Codes []history.CodeFailures // of the last hour
	Acts  history.Acts
}

// ReadFigures reads them as of now.
func ReadFigures(ctx context.Context, tx *ledger.Tx, now time.Time) (f Figures, err error) {
	if f.Pos, err = tx.Tail(ctx); err != nil || f.Pos == 0 {
		return f, err
	}
	if f.Last, err = state.LastEvent(ctx, tx, 0); err != nil {
		return f, err
	}
	if f.Queues, f.Workers, err = (status.Both{At: projection.Now(now)}).Read(ctx, tx); err != nil {
		return f, err
	}
	overdue, err := status.OverdueLeases(ctx, tx, now, overdueSlack)
	f.Overdue = overdue.Leases
	return f, err
}

// ReadFiguresAsOf reads what the overview shows of m.
func ReadFiguresAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (f Figures, err error) {
	f.Pos = m.Pos
	if f.Queues, f.Workers, err = (status.Both{At: m}).Read(ctx, tx); err != nil || m.Pos == 0 {
		return f, err
	}
	if f.Last, err = state.LastEvent(ctx, tx, m.Pos); err != nil {
		return f, err
	}
	return f, f.addCourse(ctx, tx, new(Minutes), m.At)
}

// addCourse adds what went on up to f.Pos, at now.
func (f *Figures) addCourse(ctx context.Context, tx *ledger.Tx, minutes *Minutes, now time.Time) error {
	minutes.mu.Lock()
	defer minutes.mu.Unlock()
	if f.Pos == 0 {
		return nil
	}
	if err := minutes.refresh(ctx, tx, f.Pos, now); err != nil {
		return err
	}
	f.Paces = minutes.paces(f.Queues, now)
	hourAgo, err := tx.PosAt(ctx, now.Add(-time.Hour))
	if err != nil {
		return err
	}
	if f.Codes, err = history.FailuresByCode(ctx, tx, hourAgo, f.Pos, ""); err != nil {
		return err
	}
	f.Acts, err = operatorActs(ctx, tx, f.Pos, now)
	return err
}
