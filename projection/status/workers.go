package status

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/process"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// WorkerState says whether a worker process is alive, as far as the ledger shows.
type WorkerState string

// The states of a worker process.
const (
	Working WorkerState = "working" // holds jobs, or runs the command of a claim that it lost
	Idle    WorkerState = "idle"    // present, and holds none
	Silent  WorkerState = "silent"  // did not announce its end and shows no life, or is Gone; see Workers
	Stopped WorkerState = "stopped"
)

// Worker is a worker process, or a client that claims without having announced itself.
type Worker struct {
	event.Worker
	State        WorkerState
	Queues       []string         // as announced; likewise:
	Capabilities []string         //
	StartedAt    time.Time        // when it started, or first claimed one of Jobs
	StoppedAt    time.Time        // zero: it announced no end
	SeenAt       time.Time        // the last sign of life
	Gone         bool             // its process was of this machine, and has ended; as of now only
	Jobs         []projection.Job // that it holds, the oldest claim first

	// Lost are claims that it lost and whose commands may still run, the oldest loss first.
	Lost []projection.LostClaim

	announced bool      // it announced a start
	present   time.Time // the last record of its presence; zero: none is kept
	lives     int       // starts without a stop
	later     time.Time // its last start or stop after the moment that is looked at
	signs     signs
	alive     time.Time // the last sign of life that its process gave on its own; set by judge
}

const presentNow = `SELECT w.n, p.seen_at FROM workers w JOIN presence p ON p.boot = w.boot`

// Workers asks which worker processes there are.
//
// Presence is recorded for now only. A process was alive at a moment of the past if anything shows that it
// lived later. A process with no later sign of life was silent then if it had missed one presence record, or
// if a process of its name had started on its host. Now, it is silent after three, or after one with such a
// successor. One that held a job and recorded no presence is working until its lease ends, unless it never
// wrote again and the lease was left to run out. Now, a process of this machine that has ended is silent at
// once.
type Workers struct {
	At  projection.Moment // see projection.Now
	All bool              // every one that ever started
}

// Read returns, by name, the processes that had started and not stopped at the moment, or held jobs then. A
// silent one that holds nothing is listed for a day.
func (q Workers) Read(ctx context.Context, tx *ledger.Tx) ([]Worker, error) {
	held, err := heldAt(ctx, tx, q.At)
	if err != nil {
		return nil, err
	}
	workers, err := listWorkers(ctx, tx, held, q.At, q.All)
	if err == nil && !q.At.IsNow() {
		err = seenAfterHorizon(ctx, tx, workers)
	}
	return workers, err
}

// heldAt returns the jobs that were held at m, the oldest claim first.
func heldAt(ctx context.Context, tx *ledger.Tx, m projection.Moment) (held []projection.Job, err error) {
	if m.IsNow() {
		return projection.AllHeld(ctx, tx)
	}
	then, err := projection.ListAsOf(ctx, tx,
		projection.Filter{States: []event.State{event.ClaimedState, event.Running}}, m)
	for i := range then {
		held = append(held, then[i].Job)
	}
	sortByClaim(held)
	return held, err
}

// all returns all worker processes as of l.
func (l *look) all(ctx context.Context, tx *ledger.Tx) ([]Worker, error) {
	if l.workers != nil {
		return l.workers, nil
	}
	held, err := l.held(ctx, tx)
	if err == nil && !l.at.IsNow() {
		err = setErased(ctx, tx, held)
	}
	if err == nil {
		l.workers, err = listWorkers(ctx, tx, held, l.at, true)
	}
	return l.workers, err
}

// seenAfterHorizon returns a projection.ArchivedError if one of workers has not stopped and its last sign of
// life is so old that a later one may have left the ledger with its job.
func seenAfterHorizon(ctx context.Context, tx *ledger.Tx, workers []Worker) error {
	horizon, err := projection.HorizonTime(ctx, tx)
	if err != nil || horizon.IsZero() {
		return err
	}
	for _, w := range workers {
		if w.State != Stopped && w.SeenAt.Before(horizon) {
			return projection.AfterHorizon(ctx, tx, 0)
		}
	}
	return nil
}

// forgotten reports whether w is one of all workers only: it stopped, or has long been silent, as of now.
func (w *Worker) forgotten(now time.Time) bool {
	return w.State == Stopped || w.State == Silent && len(w.Jobs)+len(w.Lost) == 0 &&
		now.Sub(w.SeenAt) > 24*time.Hour
}

// signsKept is how old what shows life may be to matter for who is there now: longer than a silent process is
// listed.
const signsKept = 25 * time.Hour

// held returns the jobs that were held, the oldest claim first.
func (l *look) held(ctx context.Context, tx *ledger.Tx) (held []projection.Job, err error) {
	if l.at.IsNow() {
		return projection.AllHeld(ctx, tx)
	}
	for _, j := range l.open {
		if j.State.Held() {
			held = append(held, j)
		}
	}
	sortByClaim(held)
	return held, nil
}

// setErased says of jobs as they were once whether their payload and results are erased by now.
func setErased(ctx context.Context, tx *ledger.Tx, jobs []projection.Job) error {
	ns := make([]int64, len(jobs))
	for i, j := range jobs {
		ns[i] = j.N
	}
	now, err := projection.GetMany(ctx, tx, ns)
	for i := range jobs {
		jobs[i].Erased = now[jobs[i].N].Erased
	}
	return err
}

func sortByClaim(jobs []projection.Job) {
	slices.SortFunc(jobs, func(a, b projection.Job) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.N, b.N))
	})
}

// listWorkers returns the workers at m, by name; held are the jobs that were held then.
func listWorkers(ctx context.Context, tx *ledger.Tx, held []projection.Job, m projection.Moment, all bool) (
	[]Worker, error) {
	found := make(map[int64]*Worker)
	past := !m.IsNow()
	if err := addHeld(ctx, tx, found, held); err != nil {
		return nil, err
	}
	if err := addLost(ctx, tx, found, m); err != nil {
		return nil, err
	}
	if err := findPresent(ctx, tx, found); err != nil {
		return nil, err
	}
	if err := addLives(ctx, tx, found, m, all || past); err != nil {
		return nil, err
	}
	known, err := knowledgeAt(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	since := int64(0)
	if !all && !past {
		if since, err = tx.PosAt(ctx, m.At.Add(-signsKept)); err != nil {
			return nil, err
		}
	}
	over, err := takenOver(ctx, tx, since)
	if err != nil {
		return nil, err
	}
	starts := startsOf(found)
	var list []Worker
	for n, w := range found {
		if len(w.Jobs)+len(w.Lost) == 0 && w.StartedAt.IsZero() {
			continue // it has not started by then
		}
		// The last act of a process that stopped is its stop; that of a process that went long ago no longer
		// counts.
		stopped := w.announced && w.lives <= 0
		gone := !all && !past && !w.present.IsZero() && m.At.Sub(w.present) > signsKept
		if !stopped && !gone {
			if w.signs, err = signsOf(ctx, tx, n, over[n], m, past); err != nil {
				return nil, err
			}
		}
		w.judge(m.At, known.of(w, m.At), starts)
		if !past && w.announced && (w.State == Working || w.State == Idle) && process.Gone(w.Boot, w.PID) {
			w.State, w.Gone = Silent, true
		}
		if all || !w.forgotten(m.At) {
			list = append(list, *w)
		}
	}
	slices.SortFunc(list, func(a, b Worker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.Boot, b.Boot))
	})
	return list, nil
}

// addHeld gives each job to the worker that holds it.
func addHeld(ctx context.Context, tx *ledger.Tx, found map[int64]*Worker, held []projection.Job) error {
	for _, j := range held {
		n, err := tx.Worker(ctx, j.Worker)
		if err != nil {
			return err
		}
		w, err := workerIn(ctx, tx, found, n)
		if err != nil {
			return err
		}
		w.Jobs = append(w.Jobs, j)
	}
	return nil
}

// addLost gives each claim that was lost at m, and whose command may still run then, to its worker.
func addLost(ctx context.Context, tx *ledger.Tx, found map[int64]*Worker, m projection.Moment) error {
	lost, err := projection.LostClaims(ctx, tx, m)
	if err != nil {
		return err
	}
	for _, c := range lost {
		n, err := tx.Worker(ctx, c.Worker)
		if err != nil {
			return err
		}
		w, err := workerIn(ctx, tx, found, n)
		if err != nil {
			return err
		}
		w.Lost = append(w.Lost, c)
	}
	return nil
}

func findPresent(ctx context.Context, tx *ledger.Tx, found map[int64]*Worker) error {
	rows, err := tx.Query(ctx, presentNow)
	var n, seen int64
	return table.Each(rows, err, []any{&n, &seen}, func() error {
		w, err := workerIn(ctx, tx, found, n)
		if err != nil {
			return err
		}
		w.present = event.FromMicros(seen)
		return nil
	})
}

// workerIn returns the worker with the number n, and adds it where it is new.
func workerIn(ctx context.Context, tx *ledger.Tx, found map[int64]*Worker, n int64) (*Worker, error) {
	if w := found[n]; w != nil {
		return w, nil
	}
	who, err := tx.WorkerOf(ctx, n)
	if err != nil {
		return nil, err
	}
	found[n] = &Worker{Worker: who}
	return found[n], nil
}

// judge says what to make of the worker at now, as far as it is known until then or later. If starts has
// another process of its name since its last sign of life, a shorter patience is enough. The heartbeat of a
// job counts as its owner's sign of life only where presence is not recorded: within a worker's command, a
// script beats for itself.
func (w *Worker) judge(now, known time.Time, starts starts) {
	if w.lives > 0 {
		w.StoppedAt = time.Time{}
	}
	alive := latestOf(w.StartedAt, w.StoppedAt)
	held := false
	claimed := func(at, beat time.Time) {
		alive = latestOf(alive, at)
		w.SeenAt = latestOf(w.SeenAt, beat)
		if !w.announced && (w.StartedAt.IsZero() || at.Before(w.StartedAt)) {
			w.StartedAt = at
		}
	}
	for _, j := range w.Jobs {
		held = held || j.LeaseUntil.After(now)
		claimed(j.ClaimedAt, j.HeartbeatAt)
	}
	for _, c := range w.Lost {
		held = true // its lease has not ended
		claimed(c.ClaimedAt, c.HeartbeatAt)
	}
	later := w.signs.later || !w.later.IsZero() || w.present.After(now)
	switch {
	case w.present.IsZero():
		alive = latestOf(alive, w.signs.acted, w.SeenAt)
	case !w.present.After(now):
		alive = latestOf(alive, w.present)
	}
	w.SeenAt = latestOf(w.SeenAt, alive, w.signs.acted)
	w.alive = alive
	lapsed := w.lapsed(now, known, starts) || w.signs.taken.After(w.SeenAt)
	switch {
	case len(w.Jobs) == 0 && w.announced && w.lives <= 0:
		w.State, w.Lost = Stopped, nil // it stops when its commands have ended
	case !w.announced && !held && w.present.IsZero():
		w.State = Silent
	case !later && (w.announced || !w.present.IsZero()) && lapsed &&
		(!held || !w.present.IsZero() || w.signs.lost): // without presence, a lease speaks for its owner
		w.State = Silent
	case len(w.Jobs)+len(w.Lost) > 0:
		w.State = Working
	default:
		w.State = Idle
	}
}

// Patience is how long after its last sign of life a process counts as silent. If no later event shows that
// it lived, one missed presence is enough.
const (
	patience         = 3 * projection.PresentEvery
	patienceReplaced = projection.PresentEvery * 4 / 3 // with a successor; a record may be a little late
	patiencePast     = projection.PresentEvery
)

// lapsed reports whether the last sign of life is too old at now.
func (w *Worker) lapsed(now, known time.Time, starts starts) bool {
	silent := now.Sub(w.alive)
	next := starts.next(w, w.alive)
	replaced := !next.IsZero() && !next.After(now)
	if known.Sub(w.alive) > patience { // it showed no life later
		return replaced || silent > patiencePast
	}
	return silent > patience || replaced && silent > patienceReplaced
}

// latestOf returns the latest of times; zero if there is none.
func latestOf(times ...time.Time) (latest time.Time) {
	for _, at := range times {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}
