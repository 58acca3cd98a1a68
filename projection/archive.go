package projection

import (
	"context"
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
// These events are few.
func Segments(ctx context.Context, tx *ledger.Tx, until int64) (found []Segment, err error) {
	f := ledger.Filter{Kinds: []event.Kind{event.KindArchived}, Until: until}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		found = append(found, segmentOf(e))
	}
	return found, nil
}

func segmentOf(e event.Event) Segment {
	return Segment{Archived: *e.Body.(*event.Archived), Pos: e.Pos, At: e.At, Actor: e.Actor}
}

// lastArchived is found in the index rare_events.
const lastArchived = `SELECT coalesce(max(pos), 0) FROM events WHERE kind = 21 AND kind > 5`

// LastSegment returns the segment that was archived last; that of no events if there is none. It costs one
// search in an index.
func LastSegment(ctx context.Context, tx *ledger.Tx) (s Segment, err error) {
	var pos int64
	if err := table.ScanOne(ctx, tx, lastArchived, []any{&pos}); err != nil || pos == 0 {
		return s, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{After: pos - 1, Until: pos}) {
		if err != nil {
			return s, err
		}
		s = segmentOf(e)
	}
	return s, nil
}

// jobsWithin finds the jobs of before a range that have events within it. The + keeps SQLite from the index
// on job.
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
	var within []int64
	if err := addNumbers(ctx, tx, &within, jobsWithin, lo, hi, lo); err != nil {
		return nil, err
	}
	for _, n := range within {
		jobs[n] = true
	}
	return jobs, nil
}
