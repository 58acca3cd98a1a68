package projection

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Moment is a position in the ledger, and the time by which due and over are judged there. AtTime and AtPos
// return one; the zero Moment is before the first event. Of a moment before the horizon they return an
// ArchivedError.
type Moment struct {
	Pos int64     // of the last event that has happened
	At  time.Time // the time of the moment
	// next is the at of the event after Pos, in microseconds. Because at never decreases (I7), a job that ended
	// earlier than next ended within Pos; if it has not been retried since, its row shows what it was then.
	next int64
}

// Now returns the moment of all that has happened, at now by the caller's clock.
func Now(now time.Time) Moment { return Moment{Pos: math.MaxInt64, At: now, next: math.MaxInt64} }

// IsNow reports whether m is of Now, and not one that was looked up.
func (m Moment) IsNow() bool { return m.Pos == math.MaxInt64 }

// AtTime returns the moment t, after the last event whose at is t or earlier.
func AtTime(ctx context.Context, tx *ledger.Tx, t time.Time) (Moment, error) {
	pos, err := PosAt(ctx, tx, t)
	if err != nil {
		return Moment{}, err
	}
	next, ok, err := TimeOfEvent(ctx, tx, pos+1)
	if !ok {
		next = math.MaxInt64
	}
	return Moment{Pos: pos, At: t, next: next}, err
}

// AtPos returns the moment just after the event pos. A pos beyond the last event means the last one.
func AtPos(ctx context.Context, tx *ledger.Tx, pos int64) (Moment, error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return Moment{}, err
	}
	m := Moment{Pos: min(pos, tail), next: math.MaxInt64}
	horizon, at, err := horizonAt(ctx, tx)
	if err == nil && m.Pos < horizon {
		err = &ArchivedError{Pos: m.Pos, Horizon: horizon}
	}
	if err == nil && (m.Pos > horizon || horizon == 0) {
		at, _, err = TimeOfEvent(ctx, tx, max(m.Pos, 1))
	}
	if err != nil {
		return Moment{}, err
	}
	m.At = event.FromMicros(at)
	if next, ok, err := TimeOfEvent(ctx, tx, m.Pos+1); ok || err != nil {
		m.next = next
		return m, err
	}
	return m, nil
}

const timeOfEvent = `SELECT at FROM events WHERE pos = ?`

// TimeOfEvent returns the at of the event pos in microseconds; ok is false if the ledger does not have it.
func TimeOfEvent(ctx context.Context, tx *ledger.Tx, pos int64) (at int64, ok bool, err error) {
	err = table.ScanOne(ctx, tx, timeOfEvent, []any{&at}, pos)
	return at, at != 0, err
}

// endedBy reports whether the row j already was at m what it is now, because the job had ended.
func (m Moment) endedBy(j Job) bool {
	return !j.FinishedAt.IsZero() && event.Micros(j.FinishedAt) < m.next
}

// FinishedBefore returns the time, in microseconds, before which every job that has ended had ended by m.
func (m Moment) FinishedBefore() int64 { return m.next }

// JobAsOf returns job n as it was at m, and the events up to then; without events the job did not exist yet.
func JobAsOf(ctx context.Context, tx *ledger.Tx, n int64, m Moment) (
	j Job, events []event.Event, err error) {
	if n > m.Pos {
		return Job{}, nil, nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: n, Until: m.Pos}) {
		if err != nil {
			return Job{}, nil, err
		}
		if j, err = Evolve(j, e); err != nil {
			return Job{}, nil, fmt.Errorf("event %d: %w", e.Pos, err)
		}
		events = append(events, e)
	}
	return j, events, nil
}

// foldChunk is how many jobs one query reads the events of.
const foldChunk = 64

// JobsAsOf folds the events of the jobs ns up to m, without erasures. Its cost grows with these jobs and
// their events, not with the ledger.
func JobsAsOf(ctx context.Context, tx *ledger.Tx, ns []int64, m Moment) (map[int64]Job, error) {
	jobs := make(map[int64]Job, len(ns))
	for e, err := range eventsOfJobs(ctx, tx, ns, m) {
		if err != nil {
			return nil, err
		}
		j, err := Evolve(jobs[e.N], e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Pos, err)
		}
		jobs[e.N] = j
	}
	return jobs, nil
}

// JobsAt returns the jobs ns as they were at m: their rows, or what JobsAsOf folds for those that had not
// ended by then.
func JobsAt(ctx context.Context, tx *ledger.Tx, ns []int64, m Moment) (map[int64]Job, error) {
	jobs, err := GetMany(ctx, tx, ns)
	if err != nil || m.IsNow() {
		return jobs, err
	}
	then, err := m.openOf(ctx, tx, maps.Values(jobs))
	maps.Copy(jobs, then)
	return jobs, err
}

// openOf returns those of rows that had not ended by m, as they were then: see JobsAsOf.
func (m Moment) openOf(ctx context.Context, tx *ledger.Tx, rows iter.Seq[Job]) (map[int64]Job, error) {
	var open []int64
	for j := range rows {
		if !m.endedBy(j) {
			open = append(open, j.N)
		}
	}
	return JobsAsOf(ctx, tx, open, m)
}

// eventsOfJobs yields the transitions of the jobs ns up to m, job by job. An error ends it.
func eventsOfJobs(ctx context.Context, tx *ledger.Tx, ns []int64, m Moment) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for len(ns) > 0 && m.Pos > 0 {
			chunk := make([]int64, foldChunk)
			size := copy(chunk, ns)
			for i := size; i < foldChunk; i++ {
				chunk[i] = chunk[size-1] // one statement for all sizes
			}
			ns = ns[size:]
			for e, err := range tx.Events(ctx, ledger.Filter{Jobs: chunk, Until: m.Pos, ByJob: true}) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// PosAt returns the last pos whose at is not after t; 0 if there is none. Before the horizon it returns an
// ArchivedError.
func PosAt(ctx context.Context, tx *ledger.Tx, t time.Time) (int64, error) {
	pos, err := tx.PosAt(ctx, t)
	if err != nil {
		return 0, err
	}
	horizon, at, err := horizonAt(ctx, tx)
	if err == nil && pos < horizon {
		if event.Micros(t) < at {
			err = &ArchivedError{Pos: pos, Horizon: horizon}
		}
		pos = horizon
	}
	return pos, err
}
