package projection

import (
	"context"
	"fmt"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Moment is a place in the ledger, and the time by which things are judged there: what is due, what is over.
// AtTime and AtPos make one; the zero Moment is before the first event.
type Moment struct {
	Pos int64     // the events up to this one have happened
	At  time.Time // later than this is the future
	// next is the at of the event behind Pos, in microseconds. What ended before that ended within Pos, because at
	// never decreases (I7); so a job that ended so early, and stayed ended, was then what its row says now.
	next int64
}

// AtTime returns the moment t: Pos is the last event with an at of t or before.
func AtTime(ctx context.Context, tx *ledger.Tx, t time.Time) (Moment, error) {
	pos, err := tx.PosAt(ctx, t)
	if err != nil {
		return Moment{}, err
	}
	next, ok, err := timeOf(ctx, tx, pos+1)
	if !ok {
		next = math.MaxInt64
	}
	return Moment{Pos: pos, At: t, next: next}, err
}

// AtPos returns the moment at which the event pos had just happened. A pos behind the last event means the last one.
func AtPos(ctx context.Context, tx *ledger.Tx, pos int64) (Moment, error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return Moment{}, err
	}
	m := Moment{Pos: min(pos, tail), next: math.MaxInt64}
	at, _, err := timeOf(ctx, tx, max(m.Pos, 1))
	if err != nil {
		return Moment{}, err
	}
	m.At = ledger.FromMicros(at)
	if next, ok, err := timeOf(ctx, tx, m.Pos+1); ok || err != nil {
		m.next = next
		return m, err
	}
	return m, nil
}

const timeOfEvent = `SELECT at FROM events WHERE pos = ?`

func timeOf(ctx context.Context, tx *ledger.Tx, pos int64) (at int64, ok bool, err error) {
	err = table.ScanOne(ctx, tx, timeOfEvent, []any{&at}, pos)
	return at, at != 0, err
}

// endedBy reports whether the row j says what the job was at m already.
func (m Moment) endedBy(j Job) bool {
	return !j.FinishedAt.IsZero() && ledger.Micros(j.FinishedAt) < m.next
}

// JobAsOf returns job n as it was at m, and the events that made it so; without events the job did not exist yet.
func JobAsOf(ctx context.Context, tx *ledger.Tx, n int64, m Moment) (j Job, events []ledger.Event, err error) {
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

// jobsAsOf folds the events of the jobs numbered ns up to m, but for what was erased. What it costs grows with these
// jobs and their events, not with the ledger.
func jobsAsOf(ctx context.Context, tx *ledger.Tx, ns []int64, m Moment) (map[int64]Job, error) {
	jobs := make(map[int64]Job, len(ns))
	for len(ns) > 0 {
		chunk := make([]int64, foldChunk)
		size := copy(chunk, ns)
		for i := size; i < foldChunk; i++ {
			chunk[i] = chunk[size-1] // the same statement whatever the size
		}
		ns = ns[size:]
		for e, err := range tx.Events(ctx, ledger.Filter{Jobs: chunk, Until: m.Pos, ByJob: true}) {
			if err != nil {
				return nil, err
			}
			j, err := Evolve(jobs[e.N], e)
			if err != nil {
				return nil, fmt.Errorf("event %d: %w", e.Pos, err)
			}
			jobs[e.N] = j
		}
	}
	return jobs, nil
}
