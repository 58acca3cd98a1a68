package follow

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of [Transitions].
const (
	page    = 5000    // transitions that are read at a time
	lookUp  = 200     // jobs that are looked up at a time
	maxJobs = 200_000 // jobs that are known at the same time; further ones are looked up again
)

// Transition is an event that may have changed the state of a job, as far as it matters for how many jobs
// wait and how long, and how long they run. Times are in microseconds since 1970.
type Transition struct {
	Pos, N   int64 // of the event and of its job
	Kind     event.Kind
	At       int64
	From, To event.State // From 0: the job is new
	Worker   int64       // the number of the worker process that the event names; 0: it names none
	due      int64       // when it is to run, as the event says; 0: it does not say that
	named    string      // of an enqueued event, the queue

	Queue string
	Wait  int64 // of a claim, how long the job had been ready, see [Ready]; -1: it is not the event of a claim
	Run   int64 // of the end of a claim, how long it lasted; -1: it is none, or when it began is not known
	Ready int64 // of a job that is queued now, when it is or will be ready; else 0
}

// transitionColumns are what a transition is read from. Heartbeats and takeovers change nothing here. The
// stored form leaves out what is the default: see dueOf.
var transitionColumns = event.SQL(`SELECT e.pos, e.job, e.kind, e.at, e.from_state, e.to_state,
    CASE WHEN e.kind IN ({enqueued}, {failed}, {released}, {reclaimed}, {retried}, {rescheduled})
    THEN CAST(coalesce(e.data ->> 'retry_at', e.data ->> 'run_at') AS BIGINT) END,
    CASE WHEN e.kind = {enqueued} THEN e.data ->> 'queue' END, e.worker
FROM events e WHERE e.to_state > 0 AND e.kind NOT IN ({kinds:keepsClaim})`)

var transitionsAfter = transitionColumns + ` AND e.pos > ? AND e.pos <= ? ORDER BY e.pos LIMIT ?`

var transitionsOfJobs = transitionColumns + ` AND e.seq > 0 AND e.job IN (?` +
	strings.Repeat(", ?", lookUp-1) + `) AND e.pos <= ? ORDER BY e.job, e.seq`

// Transitions yields the transitions of all jobs from any position on; its cost grows with what it reads. It
// knows the open jobs that it has met, and looks up what the others did before.
//
//	r := follow.Transitions{Pos: from}
//	err := r.Read(ctx, tx, tail, func(t *follow.Transition) { … })
//	err = r.Read(ctx, tx, nextTail, …) // what came meanwhile
type Transitions struct {
	Pos  int64 // everything up to it was read
	jobs map[int64]job
	over []int64 // jobs of this page that have ended
}

type job struct {
	queue   string
	ready   Ready
	claimed int64 // 0: not known
	final   bool
}

// Read calls fn for each transition after r.Pos up to until, which becomes r.Pos. A transition whose job
// cannot be found, as in a damaged ledger, is skipped.
func (r *Transitions) Read(ctx context.Context, tx *ledger.Tx, until int64, fn func(*Transition)) error {
	for r.Pos < until {
		found, err := readTransitions(ctx, tx, transitionsAfter, r.Pos, until, page)
		if err != nil {
			return err
		}
		if r.jobs == nil || len(r.jobs) > maxJobs {
			r.jobs = make(map[int64]job)
		}
		if err := r.learn(ctx, tx, found); err != nil {
			return err
		}
		for i := range found {
			if r.add(&found[i]) {
				fn(&found[i])
			}
		}
		for _, n := range r.over {
			if r.jobs[n].final {
				delete(r.jobs, n)
			}
		}
		r.over = r.over[:0]
		if len(found) < page {
			r.Pos = until
		} else {
			r.Pos = found[len(found)-1].Pos
		}
	}
	return nil
}

// learn adds what is known of the jobs of found that began earlier.
func (r *Transitions) learn(ctx context.Context, tx *ledger.Tx, found []Transition) error {
	var unknown []any
	asked := make(map[int64]bool)
	for i := range found {
		m := &found[i]
		if _, known := r.jobs[m.N]; known || asked[m.N] {
			continue
		}
		asked[m.N] = true
		if m.Kind != event.KindEnqueued {
			unknown = append(unknown, m.N)
		}
	}
	for chunk := range slices.Chunk(unknown, lookUp) {
		args := slices.Clone(chunk)
		for len(args) < lookUp {
			args = append(args, args[0]) // one statement for all sizes
		}
		before, err := readTransitions(ctx, tx, transitionsOfJobs, append(args, r.Pos)...)
		if err != nil {
			return err
		}
		for i := range before {
			r.add(&before[i])
		}
		r.over = r.over[:0] // they are about to be retried
	}
	return nil
}

func readTransitions(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Transition,
	err error) {
	err = tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		m := Transition{Pos: number(0), N: number(1), Kind: event.Kind(number(2)), At: number(3),
			From: event.State(number(4)), To: event.State(number(5)), named: ledger.Text(row[7]), Worker: number(8)}
		m.due = dueOf(m.Kind, number(6), m.At)
		found = append(found, m)
		return true
	}, query, args...)
	return found, err
}

// add adds m, and completes it; ok is false where nothing is known of its job.
func (r *Transitions) add(m *Transition) (ok bool) {
	j, known := r.jobs[m.N]
	if !known && m.Kind != event.KindEnqueued {
		return false
	}
	if m.Kind == event.KindEnqueued {
		j = job{queue: m.named}
	}
	m.Queue, m.Wait, m.Run = j.queue, -1, -1
	if m.Kind == event.KindClaimed {
		if ready := j.ready.At(); ready > 0 {
			m.Wait = max(0, m.At-ready)
		}
		j.claimed = m.At
	}
	if m.From.Held() && !m.To.Held() && j.claimed > 0 {
		m.Run, j.claimed = max(0, m.At-j.claimed), 0
	}
	j.ready.Add(m.From, m.To, m.At, m.due)
	m.Ready = j.ready.At()
	if j.final = m.To.Final(); j.final {
		r.over = append(r.over, m.N)
	}
	r.jobs[m.N] = j
	return true
}

// Change is by how much a transition changes how many jobs are in the states that in selects. From 0: the job
// is new.
func Change(from, to event.State, in func(event.State) bool) (n int64) {
	if in(to) {
		n++
	}
	if from != 0 && in(from) {
		n--
	}
	return n
}

// IsQueued reports whether s is the state of a queued job.
func IsQueued(s event.State) bool { return s == event.Queued }
