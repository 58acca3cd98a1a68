package report

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/query"
)

// TakenJob is a job that was taken from a worker, and the claim after that.
type TakenJob struct {
	At      time.Time // when it was taken
	Job     event.JobID
	Queue   string
	Attempt int
	From    event.Worker
	Reason  string
	Next    attempts.Attempt // the zero Attempt: no worker got it
}

// Fields implements [Row].
func (t TakenJob) Fields() []Field {
	outcome, waited := "", any(nil)
	if t.Next.Pos > 0 {
		if outcome = "open"; t.Next.Outcome != 0 {
			outcome = t.Next.Outcome.String()
		}
		waited = t.Next.ClaimedAt.Sub(t.At)
	}
	return []Field{{"at", t.At}, {"job", string(t.Job)}, {"queue", t.Queue}, {"attempt", int64(t.Attempt)},
		{"worker", t.From.Name}, {"reason", t.Reason}, {"next_worker", t.Next.Worker.Name},
		{"next_claimed_at", t.Next.ClaimedAt}, {"waited", waited}, {"next_outcome", outcome}}
}

// Taken returns the jobs that were taken from a worker within s, in the order in which that happened. The
// claim after that may have begun after s.
func Taken(ctx context.Context, tx *ledger.Tx, s Window) (taken []TakenJob, err error) {
	f := ledger.Filter{After: s.After, Until: s.Until, Queue: s.Queue, Worker: s.Worker,
		Kinds: []event.Kind{event.KindReclaimed}}
	var positions []int64
	var numbers []int64
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		reason := ""
		if b, ok := e.Body.(*event.Reclaimed); ok {
			reason = b.Reason
		}
		taken = append(taken, TakenJob{At: e.At, Job: e.Job, Attempt: e.Attempt, From: e.Worker, Reason: reason})
		positions, numbers = append(positions, e.Pos), append(numbers, e.N)
	}
	latest, err := projection.AtPos(ctx, tx, maxPos)
	if err != nil {
		return nil, err
	}
	queues := make(map[int64]string)
	for i := range taken {
		n := numbers[i]
		next, err := attempts.List(ctx, tx,
			attempts.Filter{Job: n, After: positions[i], To: latest, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(next) > 0 {
			taken[i].Next = next[0]
		}
		if taken[i].Queue, err = queueOf(ctx, tx, n, queues); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(taken, func(a, b TakenJob) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(string(a.Job), string(b.Job)))
	})
	return taken, nil
}

const maxPos = 1<<63 - 1

const queueQuery = `SELECT data ->> 'queue' FROM events WHERE pos = ?`

// queueOf returns the queue of job n.
func queueOf(ctx context.Context, tx *ledger.Tx, n int64, known map[int64]string) (queue string, err error) {
	if queue, ok := known[n]; ok {
		return queue, nil
	}
	err = each(ctx, tx, func(r *ledger.Rows) error { return r.Scan(&queue) }, queueQuery, n)
	known[n] = queue
	return queue, err
}

// SilentWorker is a worker process that did not announce its end.
type SilentWorker struct{ query.SilentWorker }

// Fields implements [Row].
func (w SilentWorker) Fields() []Field {
	return []Field{{"last_sign_of_life", w.SeenAt}, {"worker", w.Name}, {"host", w.Host},
		{"pid", int64(w.PID)}, {"boot", w.Boot}, {"lost", w.Taken}, {"held", w.Holds}}
}

// Silent returns the worker processes that had announced their start but not their end, and whose last sign
// of life is within s, in the order of that sign. They count as lost the jobs that were taken from them since
// s began.
func Silent(ctx context.Context, tx *ledger.Tx, s Window) (silent []SilentWorker, err error) {
	q := query.Silent{Worker: s.Worker}
	if s.After > 0 {
		if q.From, err = projection.AtPos(ctx, tx, s.After); err != nil {
			return nil, err
		}
	}
	if q.To, err = projection.AtPos(ctx, tx, s.Until); err != nil {
		return nil, err
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	if end := cmp.Or(s.End, s.Now); s.Until >= tail && end.After(q.To.At) {
		q.To.At = end // what was seen after the last event counts
	}
	found, err := q.Read(ctx, tx)
	for _, w := range found {
		silent = append(silent, SilentWorker{w})
	}
	return silent, err
}

// PoisonJob is a job that was taken from more than one worker process.
type PoisonJob struct {
	Job       event.JobID
	Taken     int64
	Processes int64    // from how many worker processes
	Workers   []string // their names, in the order in which they lost it
	Last      time.Time
	Queue     string
	State     event.State // now
}

// Fields implements [Row].
func (j PoisonJob) Fields() []Field {
	return []Field{{"job", string(j.Job)}, {"queue", j.Queue}, {"taken", j.Taken}, {"processes", j.Processes},
		{"workers", j.Workers}, {"last", j.Last}, {"state_now", j.State}}
}

const stateNow = `SELECT state FROM jobs WHERE n = ?`

// Poison returns the jobs that were taken from more than one worker process within s, those with the most
// processes first.
func Poison(ctx context.Context, tx *ledger.Tx, s Window) (poison []PoisonJob, err error) {
	f := ledger.Filter{After: s.After, Until: s.Until, Queue: s.Queue, Kinds: []event.Kind{event.KindReclaimed}}
	jobs := make(map[int64]*PoisonJob)
	seen := make(map[int64]map[string]bool)
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		if jobs[e.N] == nil {
			jobs[e.N], seen[e.N] = &PoisonJob{Job: e.Job}, make(map[string]bool)
		}
		j := jobs[e.N]
		j.Taken++
		j.Last = e.At
		j.Workers = append(j.Workers, e.Worker.Name)
		seen[e.N][e.Worker.Boot] = true
	}
	queues := make(map[int64]string)
	for n, j := range jobs {
		if j.Processes = int64(len(seen[n])); j.Processes < 2 {
			continue
		}
		if j.Queue, err = queueOf(ctx, tx, n, queues); err != nil {
			return nil, err
		}
		err := each(ctx, tx, func(r *ledger.Rows) error { return r.Scan(&j.State) }, stateNow, n)
		if err != nil {
			return nil, err
		}
		poison = append(poison, *j)
	}
	slices.SortFunc(poison, func(a, b PoisonJob) int {
		return cmp.Or(-cmp.Compare(a.Processes, b.Processes), a.Last.Compare(b.Last),
			strings.Compare(string(a.Job), string(b.Job)))
	})
	return poison, nil
}
