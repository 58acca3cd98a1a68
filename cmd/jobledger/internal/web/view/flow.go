package view

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of a [flow].
const (
	flowPage    = 5000    // moves that are read at a time
	flowLookUp  = 200     // jobs that are looked up at a time
	maxFlowJobs = 200_000 // jobs that are known at the same time; further ones are looked up again
)

// move is a transition of a job, as far as it matters for how long jobs wait and run. Times are in
// microseconds since 1970.
type move struct {
	pos, n   int64
	kind     event.Kind
	at       int64
	from, to event.State
	due      int64  // when it is to run, as the event says; 0: it does not say that
	named    string // of an enqueued event, the queue

	queue string // set by the flow, with what follows:
	wait  int64  // of a claim, how long the job had been ready; -1: not known, or none
	run   int64  // of the end of a claim, how long it lasted; -1: likewise
	ready int64  // of a job that is queued now, when it is or will be ready
}

// moveColumns are what a move is read from. Heartbeats and takeovers change nothing here.
const moveColumns = `SELECT e.pos, e.job, e.kind, e.at, e.from_state, e.to_state,
    CASE WHEN e.kind IN (1, 5, 6, 7, 9, 10)
    THEN CAST(coalesce(e.data ->> 'retry_at', e.data ->> 'run_at') AS BIGINT) END,
    CASE WHEN e.kind = 1 THEN e.data ->> 'queue' END
FROM events e WHERE e.to_state > 0 AND e.kind NOT IN (3, 30)`

const movesAfter = moveColumns + ` AND e.pos > ? AND e.pos <= ? ORDER BY e.pos LIMIT ?`

var movesOfJobs = moveColumns + ` AND e.seq > 0 AND e.job IN (?` + strings.Repeat(", ?", flowLookUp-1) +
	`) AND e.pos <= ? ORDER BY e.job, e.seq`

// flow goes along the moves of all jobs from any position on. It knows the open jobs that it has met, and
// looks up what the others did before.
type flow struct {
	pos  int64 // everything up to it was added
	jobs map[int64]flowJob
	over []int64 // jobs of this page that have ended
}

type flowJob struct {
	queue          string
	ready, claimed int64 // 0: not known
	final          bool
}

// read calls fn for each move after f.pos up to until.
func (f *flow) read(ctx context.Context, tx *ledger.Tx, until int64, fn func(*move)) error {
	for f.pos < until {
		moves, err := readMoves(ctx, tx, movesAfter, f.pos, until, flowPage)
		if err != nil {
			return err
		}
		if f.jobs == nil || len(f.jobs) > maxFlowJobs {
			f.jobs = make(map[int64]flowJob)
		}
		if err := f.lookUp(ctx, tx, moves); err != nil {
			return err
		}
		for i := range moves {
			if f.add(&moves[i]) {
				fn(&moves[i])
			}
		}
		for _, n := range f.over {
			if f.jobs[n].final {
				delete(f.jobs, n)
			}
		}
		f.over = f.over[:0]
		if len(moves) < flowPage {
			f.pos = until
		} else {
			f.pos = moves[len(moves)-1].pos
		}
	}
	return nil
}

// lookUp adds what is known of the jobs of moves that began earlier.
func (f *flow) lookUp(ctx context.Context, tx *ledger.Tx, moves []move) error {
	var unknown []any
	asked := make(map[int64]bool)
	for i := range moves {
		m := &moves[i]
		if _, known := f.jobs[m.n]; known || asked[m.n] {
			continue
		}
		asked[m.n] = true
		if m.kind != event.KindEnqueued {
			unknown = append(unknown, m.n)
		}
	}
	for chunk := range slices.Chunk(unknown, flowLookUp) {
		args := slices.Clone(chunk)
		for len(args) < flowLookUp {
			args = append(args, args[0]) // one statement for all sizes
		}
		before, err := readMoves(ctx, tx, movesOfJobs, append(args, f.pos)...)
		if err != nil {
			return err
		}
		for i := range before {
			f.add(&before[i])
		}
		f.over = f.over[:0] // they are about to be retried
	}
	return nil
}

func readMoves(ctx context.Context, tx *ledger.Tx, query string, args ...any) (moves []move, err error) {
	err = tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		m := move{pos: number(0), n: number(1), kind: event.Kind(number(2)), at: number(3),
			from: event.State(number(4)), to: event.State(number(5)), due: number(6),
			named: textOf(row[7])}
		moves = append(moves, m)
		return true
	}, query, args...)
	return moves, err
}

// textOf returns a text as any driver has it; "": there is none.
func textOf(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// add adds m, and completes it; ok is false where nothing is known of its job.
func (f *flow) add(m *move) (ok bool) {
	j, known := f.jobs[m.n]
	if !known && m.kind != event.KindEnqueued {
		return false
	}
	if m.kind == event.KindEnqueued {
		j = flowJob{queue: m.named, ready: m.due}
	}
	m.queue, m.wait, m.run = j.queue, -1, -1
	if m.kind == event.KindClaimed {
		if j.ready > 0 {
			m.wait = max(0, m.at-j.ready)
		}
		j.claimed = m.at
	}
	if m.from.Held() && !m.to.Held() && j.claimed > 0 {
		m.run, j.claimed = max(0, m.at-j.claimed), 0
	}
	if m.due > 0 {
		j.ready = m.due
	}
	if m.to == event.Queued && m.kind != event.KindReplaced {
		j.ready = max(j.ready, m.at)
	}
	m.ready = j.ready
	if j.final = m.to.Final(); j.final {
		f.over = append(f.over, m.n)
	}
	f.jobs[m.n] = j
	return true
}
