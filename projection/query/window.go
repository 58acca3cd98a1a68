package query

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// When is a moment that a user named: a time, or a position in the ledger.
type When struct {
	Time  time.Time // if ByPos: what the clock said, if that was given; else zero
	Pos   int64     // 0 is the ledger before its first event
	ByPos bool
}

// At returns the moment t.
func At(t time.Time) *When { return &When{Time: t} }

// AtPos returns the moment just after the event pos.
func AtPos(pos int64) *When { return &When{Pos: pos, ByPos: true} }

// String returns w as the command line reads it.
func (w When) String() string {
	if w.ByPos && !w.Time.IsZero() {
		return fmt.Sprintf("pos:%d@%s", w.Pos, w.Time.UTC().Format("2006-01-02T15:04:05.999999Z"))
	}
	if w.ByPos {
		return "pos:" + strconv.FormatInt(w.Pos, 10)
	}
	return w.Time.Format("2006-01-02 15:04:05-07:00")
}

// Window is a window of a ledger as a user named it. The zero value is the whole ledger.
type Window struct {
	From *When // the first moment of it, included; nil: the beginning of the ledger
	To   *When // the last one, included; nil: the end of the ledger
	At   *When // nothing is known of what came after this moment; nil: everything is known

	// Archived means the beginning of the ledger even if its first events are in the archive. Else a window
	// without From is then a projection.ArchivedError.
	Archived bool
}

// Span is a window of one ledger.
type Span struct {
	From projection.Moment // the events after From.Pos belong to it
	To   projection.Moment // up to To.Pos
	// At is the moment of the question: what happened after it, such as the end or a heartbeat of an attempt, is
	// not known. The zero moment: everything is known.
	At projection.Moment

	Queue  string // only jobs of this queue; "": all
	Worker string // only the worker with this name, or the process with this boot; "": all
}

// Check returns an [*InputError] if From is after To or At. A time and a position are not compared.
func (w Window) Check() error {
	for _, end := range []*When{w.To, w.At} {
		if f := w.From; f != nil && end != nil && f.ByPos == end.ByPos &&
			(f.ByPos && f.Pos > end.Pos || !f.ByPos && f.Time.After(end.Time)) {
			return badInput("from", "later than the end of the window")
		}
	}
	return nil
}

// Resolve returns what w means in the ledger of tx. now is the caller's time; a copy that replay made ends
// when it was copied. It returns an [*InputError] if From is after To, if a moment is in the future, or
// a position beyond the end of the ledger, and a projection.ArchivedError if a moment is before the horizon.
func (w Window) Resolve(ctx context.Context, tx *ledger.Tx, now time.Time) (s Span, err error) {
	if err := w.Check(); err != nil {
		return s, err
	}
	if w.At != nil {
		if s.At, err = w.At.Moment(ctx, tx, "at", now); err != nil {
			return s, err
		}
	}
	switch {
	case w.To != nil:
		s.To, err = w.To.Moment(ctx, tx, "to", now)
		if err == nil && w.At != nil && s.To.Pos > s.At.Pos {
			s.To = s.At
		}
	case w.At != nil:
		s.To = s.At
	default:
		s.To, err = projection.AtPos(ctx, tx, math.MaxInt64)
	}
	if err != nil {
		return s, err
	}
	switch {
	case w.From != nil:
		s.From, err = w.From.before(ctx, tx, now)
	case !w.Archived:
		err = projection.AfterHorizon(ctx, tx, 0)
	}
	return s, err
}

// Moment returns the moment w, the value of a field. It is neither in the future nor beyond the end of the
// ledger.
func (w When) Moment(ctx context.Context, tx *ledger.Tx, field string, now time.Time) (m projection.Moment,
	err error) {
	if w.Time.After(now) {
		return m, badInput(field, "%s is yet to come", When{Time: w.Time.In(now.Location())})
	}
	if !w.ByPos {
		return projection.AtTime(ctx, tx, w.Time)
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return m, err
	}
	if w.Pos > tail {
		return m, badInput(field, "the ledger ends at pos:%d", tail)
	}
	if m, err = projection.AtPos(ctx, tx, w.Pos); err == nil && w.Time.After(m.At) {
		m.At = w.Time // nothing happened from then on
	}
	return m, err
}

// before returns the moment right before w, so that what happened at w comes after it.
func (w When) before(ctx context.Context, tx *ledger.Tx, now time.Time) (projection.Moment, error) {
	first := w
	if w.ByPos {
		first.Pos, first.Time = max(w.Pos-1, 0), time.Time{}
	} else {
		first.Time = w.Time.Add(-1)
	}
	if w.Time.After(now) {
		first.Time = w.Time
	}
	if w.ByPos && w.Pos > 0 { // the event itself is to be there
		if _, err := w.Moment(ctx, tx, "from", now); err != nil {
			return projection.Moment{}, err
		}
	}
	m, err := first.Moment(ctx, tx, "from", now)
	if err == nil && !w.ByPos {
		m.At = w.Time
	}
	return m, err
}

// Position returns the pos of the last event that is not later than w, or with before of the last that is
// earlier. Before the horizon it returns a projection.ArchivedError.
func (w When) Position(ctx context.Context, tx *ledger.Tx, before bool) (int64, error) {
	pos := w.Pos
	switch {
	case !w.ByPos && before:
		return projection.PosAt(ctx, tx, w.Time.Add(-1))
	case !w.ByPos:
		return projection.PosAt(ctx, tx, w.Time)
	case before:
		pos = max(pos-1, 0)
	}
	return pos, projection.AfterHorizon(ctx, tx, pos)
}
