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
type SilentWorker struct {
	LastSign time.Time // the last event or presence of it
	Worker   event.Worker
	Lost     int64 // jobs that were taken from it afterwards
	Held     int64 // jobs that it still holds
}

// Fields implements [Row].
func (w SilentWorker) Fields() []Field {
	return []Field{{"last_sign_of_life", w.LastSign}, {"worker", w.Worker.Name}, {"host", w.Worker.Host},
		{"pid", int64(w.Worker.PID)}, {"boot", w.Worker.Boot}, {"lost", w.Lost}, {"held", w.Held}}
}

// silentAfter is how long a process has to be without a sign of life to be silent.
const silentAfter = 3 * projection.PresentEvery

// lastSigns reads the events that only a living worker process causes.
const lastSigns = `SELECT e.worker, max(e.at) FROM events e
WHERE e.pos > ? AND e.pos <= ? AND e.worker IS NOT NULL AND e.kind IN (2, 3, 4, 5, 6, 15) GROUP BY e.worker`

// startsAndStops reads the index on (job, seq): few events belong to no job.
const startsAndStops = `SELECT e.worker, e.kind FROM events e
WHERE e.job IS NULL AND e.seq IS NULL AND e.kind IN (15, 16) AND e.worker IS NOT NULL AND e.pos <= ?`

// claimAfter reads the index on the claims of a worker.
const claimAfter = `SELECT e.at FROM events e WHERE e.worker = ? AND e.kind = 2 AND e.at > ? LIMIT 1`

const presenceOf = `SELECT seen_at FROM presence WHERE boot = ?`

// Silent returns the worker processes that had announced their start but not their end, and whose last sign
// of life is within s, in the order of that sign. They count as lost the jobs that they held within s and
// that were taken from them, also later.
func Silent(ctx context.Context, tx *ledger.Tx, s Window) (silent []SilentWorker, err error) {
	announced, stopped, err := processes(ctx, tx)
	if err != nil {
		return nil, err
	}
	byBoot := make(map[string]*SilentWorker) // a process has several numbers if its version changed
	numbers := make(map[string][]int64)
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var n, at int64
		if err := r.Scan(&n, &at); err != nil {
			return err
		}
		w, err := tx.WorkerOf(ctx, n)
		chosen := s.Worker == "" || s.Worker == w.Name || s.Worker == w.Boot
		if err != nil || !chosen || !announced[w.Boot] || stopped[w.Boot] {
			return err
		}
		if byBoot[w.Boot] == nil {
			byBoot[w.Boot] = &SilentWorker{Worker: w}
		}
		byBoot[w.Boot].saw(event.FromMicros(at))
		numbers[w.Boot] = append(numbers[w.Boot], n)
		return nil
	}, lastSigns, s.After, s.Until)
	if err != nil {
		return nil, err
	}
	end, err := projection.AtPos(ctx, tx, s.Until)
	if err != nil {
		return nil, err
	}
	for boot, w := range byBoot {
		for _, n := range numbers[boot] {
			err := each(ctx, tx, w.scanSign, claimAfter, n, event.Micros(end.At))
			if err != nil {
				return nil, err
			}
		}
		if !w.LastSign.After(end.At) {
			if err := w.addClaims(ctx, tx, s); err != nil {
				return nil, err
			}
			if err := each(ctx, tx, w.scanSign, presenceOf, boot); err != nil {
				return nil, err
			}
		}
		// a presence after the last event is within a window that goes up to that event
		tail, err := tx.Tail(ctx)
		if err != nil {
			return nil, err
		}
		within := !w.LastSign.After(end.At) || s.Until >= tail
		if within && s.Now.Sub(w.LastSign) >= silentAfter {
			silent = append(silent, *w)
		}
	}
	slices.SortFunc(silent, func(a, b SilentWorker) int {
		return cmp.Or(a.LastSign.Compare(b.LastSign), strings.Compare(a.Worker.Boot, b.Worker.Boot))
	})
	return silent, nil
}

// processes returns the boots of the processes that announced their start, and of those that announced their
// end.
func processes(ctx context.Context, tx *ledger.Tx) (started, stopped map[string]bool, err error) {
	started, stopped = make(map[string]bool), make(map[string]bool)
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var n int64
		var kind event.Kind
		if err := r.Scan(&n, &kind); err != nil {
			return err
		}
		w, err := tx.WorkerOf(ctx, n)
		if kind == event.KindWorkerStarted {
			started[w.Boot] = true
		} else {
			stopped[w.Boot] = true
		}
		return err
	}, startsAndStops, int64(maxPos))
	return started, stopped, err
}

// saw records a sign of life.
func (w *SilentWorker) saw(at time.Time) {
	if at.After(w.LastSign) {
		w.LastSign = at
	}
}

func (w *SilentWorker) scanSign(r *ledger.Rows) error {
	var at int64
	err := r.Scan(&at)
	w.saw(event.FromMicros(at))
	return err
}

// addClaims adds the claims that the process held within s: their signs of life, and how they ended.
func (w *SilentWorker) addClaims(ctx context.Context, tx *ledger.Tx, s Window) error {
	from, err := projection.AtPos(ctx, tx, s.After)
	if err != nil {
		return err
	}
	if s.After == 0 {
		from = projection.Moment{}
	}
	latest, err := projection.AtPos(ctx, tx, maxPos)
	if err != nil {
		return err
	}
	f := attempts.Filter{Worker: w.Worker.Boot, From: from, To: latest}
	claims, err := attempts.List(ctx, tx, f)
	for _, a := range claims {
		w.saw(a.ClaimedAt)
		w.saw(a.LastHeartbeat)
		switch a.Outcome {
		case event.KindReclaimed:
			w.Lost++
		case 0:
			w.Held++
		case event.KindSucceeded, event.KindFailed, event.KindReleased:
			w.saw(a.EndedAt)
		}
	}
	return err
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
