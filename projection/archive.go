package projection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Segment is a range of the ledger's events that was archived, as the event that says so.
type Segment struct {
	event.Archived
	Pos   int64
	At    time.Time
	Actor string
}

// Segments returns the segments that had been archived by the event until, in order; 0 is the last event.
// If a later event describes the file of a segment, its Parts come from that event. These events are few.
func Segments(ctx context.Context, tx *ledger.Tx, until int64) (found []Segment, err error) {
	f := ledger.Filter{Kinds: []event.Kind{event.KindArchived, event.KindArchiveDescribed}, Until: until}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		b, described := e.Body.(*event.ArchiveDescribed)
		if !described {
			found = append(found, segmentOf(e))
			continue
		}
		for i := range found {
			if s := &found[i]; s.Hi == b.Hi && len(s.Parts) == 0 {
				s.Parts = b.Parts
			}
		}
	}
	return found, nil
}

func segmentOf(e event.Event) Segment {
	return Segment{Archived: *e.Body.(*event.Archived), Pos: e.Pos, At: e.At, Actor: e.Actor}
}

// LastSegment returns the segment that was archived last; that of no events if there is none. It costs one
// search in an index.
func LastSegment(ctx context.Context, tx *ledger.Tx) (s Segment, err error) {
	pos, err := tx.LastOf(ctx, event.KindArchived)
	if err != nil || pos == 0 {
		return s, err
	}
	return segmentAt(ctx, tx, pos)
}

// segmentAt returns the segment of the archived event at pos.
func segmentAt(ctx context.Context, tx *ledger.Tx, pos int64) (s Segment, err error) {
	e, found, err := tx.EventAt(ctx, pos)
	if err != nil || !found {
		return s, err
	}
	if _, ok := e.Body.(*event.Archived); !ok {
		return s, fmt.Errorf("%w: the event %d is not an archived one", ledger.ErrDamaged, pos)
	}
	return segmentOf(e), nil
}

// Removal is what has left the ledger so far, as its removed events say. What an imported history says has
// left is about another ledger.
type Removal struct {
	event.Removed           // Hi, More and Reason are those of the last event; the rest is the sum of all
	Pos           int64     // of the last event; 0: nothing has left
	At            time.Time // of that event
	Departed      Departed  // the jobs; the field Left is not used
}

// Removed returns what has left the ledger. It reads every removed event, and those that describe
// files.
func Removed(ctx context.Context, tx *ledger.Tx) (r Removal, err error) {
	imported, err := tx.LastOf(ctx, event.KindImported)
	if err != nil {
		return r, err
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindRemoved, event.KindArchiveDescribed}, After: imported}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return r, err
		}
		switch b := e.Body.(type) {
		case *event.Removed:
			r.Add(b, e.Pos, e.At)
		case *event.ArchiveDescribed:
			r.Departed.Name(b.Left)
		}
	}
	return r, nil
}

// Add adds the next removed event.
func (r *Removal) Add(b *event.Removed, pos int64, at time.Time) {
	if b.Erased != "" {
		r.Kept -= b.Bodies
		return
	}
	r.Pos, r.At, r.More, r.Reason = pos, at, b.More, b.Reason
	r.Kept += b.Kept
	r.Hi = max(r.Hi, b.Hi)
	r.Jobs += b.Jobs
	r.Events += b.Events
	r.Bodies += b.Bodies
	r.BodyBytes += b.BodyBytes
	r.Keys += b.Keys
	r.Departed.Add(b)
}

// Horizon returns the position up to which events may have left the ledger; 0: none has. Every event after it
// is there. It costs two searches in an index.
func Horizon(ctx context.Context, tx *ledger.Tx) (int64, error) {
	if tx.Whole() {
		return 0, nil
	}
	if known, ok := tx.Cache().Rare(event.KindRemoved); ok {
		return known.(int64), nil
	}
	h, err := horizon(ctx, tx)
	if err == nil {
		tx.Cache().KeepRare(event.KindRemoved, h)
	}
	return h, err
}

func horizon(ctx context.Context, tx *ledger.Tx) (int64, error) {
	last, err := tx.LastOf(ctx, event.KindRemoved)
	if err != nil || last == 0 {
		return 0, err
	}
	imported, err := tx.LastOf(ctx, event.KindImported)
	if err != nil || imported > last {
		return 0, err
	}
	e, found, err := tx.EventAt(ctx, last)
	if err != nil || !found {
		return 0, err
	}
	return e.Body.(*event.Removed).Hi, nil
}

// ErrArchived means that a question is about events which may have left the ledger.
var ErrArchived = errors.New("archived")

// ArchivedError is ErrArchived. It says which event was asked for.
type ArchivedError struct {
	Pos     int64 // that was asked for
	Horizon int64
}

// Error says where the events are.
func (e *ArchivedError) Error() string {
	return fmt.Sprintf("the event %d may have left the ledger: the events up to %d are in its archive", e.Pos,
		e.Horizon)
}

// Unwrap returns ErrArchived.
func (e *ArchivedError) Unwrap() error { return ErrArchived }

// AfterHorizon returns an ArchivedError if pos is before the horizon.
func AfterHorizon(ctx context.Context, tx *ledger.Tx, pos int64) error {
	h, err := Horizon(ctx, tx)
	if err == nil && pos < h {
		err = &ArchivedError{Pos: pos, Horizon: h}
	}
	return err
}

// horizonAt returns the horizon and the at of the event there, in microseconds.
func horizonAt(ctx context.Context, tx *ledger.Tx) (pos, at int64, err error) {
	if pos, err = Horizon(ctx, tx); err != nil || pos == 0 {
		return 0, 0, err
	}
	closed, err := segmentTo(ctx, tx, pos)
	return pos, event.Micros(closed.LastAt), err
}

// segmentTo returns the segment that ends with the event hi.
func segmentTo(ctx context.Context, tx *ledger.Tx, hi int64) (s Segment, err error) {
	var pos int64
	if err := table.ScanOne(ctx, tx, `SELECT pos FROM segments WHERE hi = ?`, []any{&pos}, hi); err != nil {
		return s, err
	}
	if pos == 0 {
		return s, fmt.Errorf("%w: no segment ends with the event %d", ledger.ErrDamaged, hi)
	}
	return segmentAt(ctx, tx, pos)
}

// HorizonTime returns the at of the event at the horizon; zero: nothing has left the ledger.
func HorizonTime(ctx context.Context, tx *ledger.Tx) (time.Time, error) {
	_, at, err := horizonAt(ctx, tx)
	return event.FromMicros(at), err
}

// AddSegment adds the row of the segment that the archived event at pos names, which must be written already.
func AddSegment(tx *ledger.Tx, b *event.Archived, pos int64) error {
	_, err := tx.Exec(`INSERT INTO segments (hi, lo, pos) VALUES (?, ?, ?)`, b.Hi, b.Lo, pos)
	return err
}

// ArchivePolicy returns what processes that sweep archive; the zero body if they archive nothing. It costs
// one search in an index.
func ArchivePolicy(ctx context.Context, tx *ledger.Tx) (p event.ArchivePolicy, err error) {
	pos, err := tx.LastOf(ctx, event.KindArchivePolicy)
	if err != nil || pos == 0 {
		return p, err
	}
	e, found, err := tx.EventAt(ctx, pos)
	if err == nil && found {
		p = *e.Body.(*event.ArchivePolicy)
	}
	return p, err
}

// jobsWithin finds the jobs that began before a range and have events within it. The + keeps SQLite from
// the index on job.
const jobsWithin = `SELECT job FROM events WHERE pos > ? AND pos <= ? AND +job <= ?`

// JobsUntil returns the numbers of the jobs that a segment of the events lo+1, …, hi carries in: those of
// before that have events within it, which are true, and those that had not ended at lo. Of the latter, some
// may have ended.
func JobsUntil(ctx context.Context, tx *ledger.Tx, lo, hi int64) (map[int64]bool, error) {
	jobs := make(map[int64]bool)
	if lo == 0 {
		return jobs, nil
	}
	m, err := AtPos(ctx, tx, lo)
	if err != nil {
		return nil, err
	}
	open, err := OpenAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	for _, n := range open {
		jobs[n] = false
	}
	within, err := table.Numbers(ctx, tx, jobsWithin, lo, hi, lo)
	if err != nil {
		return nil, err
	}
	for _, n := range within {
		jobs[n] = true
	}
	return jobs, nil
}
