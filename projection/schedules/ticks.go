package schedules

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Named returns the schedule of m with this name, alone; none if there is none.
func Named(ctx context.Context, tx *ledger.Tx, m projection.Moment, name string) ([]Schedule, error) {
	all, err := At(ctx, tx, m.Pos)
	return slices.DeleteFunc(all, func(s Schedule) bool { return s.Spec.Name != name }), err
}

// LastJobID is the id of the last job of s; "": there is none.
func (s Schedule) LastJobID(ctx context.Context, tx *ledger.Tx) (event.JobID, error) {
	if s.LastJob == 0 {
		return "", nil
	}
	return projection.IDOf(ctx, tx, s.LastJob)
}

// Tick is what became of a tick of a schedule, or of several in a row that made no job for one reason.
type Tick struct {
	At    time.Time // the tick, or the first of several
	To    time.Time // the last of several
	Count int64     // how many they are; 1 of one that made a job
	Pos   int64     // of the event

	Job projection.Job // that it made; zero: none

	Why    string // it made no job, as event.ScheduleSkipped has it
	Detail string // likewise
}

// Ticks asks what became of the last ticks of schedules.
type Ticks struct {
	Of   []Schedule
	At   projection.Moment
	Last int // at most so many of each
}

// TickList is the answer to [Ticks].
type TickList struct {
	By    map[string][]Tick // by the name of the schedule, the newest first
	Since time.Time         // those before it that made no job were not looked at; zero: all were
	Left  bool              // jobs have left the ledger, and their ticks with them
}

// maxSkipped is how many events of ticks that made no job are looked at, the last ones.
const maxSkipped = 5000

// Read returns the ticks. Those that made a job are found by its key, so the answer costs as much in a large
// ledger as in a small one.
func (q Ticks) Read(ctx context.Context, tx *ledger.Tx) (found TickList, err error) {
	found.By = make(map[string][]Tick)
	if len(q.Of) == 0 {
		return found, nil
	}
	horizon, err := projection.Horizon(ctx, tx)
	if err != nil {
		return found, err
	}
	found.Left = horizon > 0
	queues, err := queuesOf(ctx, tx, q.At.Pos)
	if err != nil {
		return found, err
	}
	for _, s := range q.Of {
		for _, queue := range queues[s.Spec.Name] {
			if err := q.addJobs(ctx, tx, &found, s.Spec.Name, queue); err != nil {
				return found, err
			}
		}
	}
	if err := q.addSkipped(ctx, tx, &found); err != nil {
		return found, err
	}
	for name, ticks := range found.By {
		slices.SortFunc(ticks, func(a, b Tick) int { return b.At.Compare(a.At) })
		found.By[name] = ticks[:min(len(ticks), q.Last)]
	}
	return found, nil
}

// queuesOf are the queues that each schedule ever had by the event pos, by its name.
func queuesOf(ctx context.Context, tx *ledger.Tx, pos int64) (map[string][]string, error) {
	queues := make(map[string][]string)
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindScheduleSet}, Until: pos}) {
		if err != nil {
			return nil, err
		}
		b, _ := e.Body.(*event.ScheduleSet)
		if !slices.Contains(queues[b.Name], b.Queue) {
			queues[b.Name] = append(queues[b.Name], b.Queue)
		}
	}
	return queues, nil
}

// withKeys are the jobs of a queue whose keys are in a range, the last keys first.
const withKeys = `SELECT n FROM jobs WHERE queue = ? AND key >= ? AND key < ? ORDER BY key DESC LIMIT ?`

// addJobs adds the last ticks of the schedule name whose jobs are in queue. Their keys end with the moment of
// the tick, so they are in its order. Jobs of others may have such keys too.
func (q Ticks) addJobs(ctx context.Context, tx *ledger.Tx, found *TickList, name, queue string) error {
	n, err := tx.Name(ctx, queue)
	if err != nil || n == 0 {
		return err
	}
	had, before := 0, name+"@:"
	if !q.At.IsNow() {
		before = name + "@" + q.At.At.UTC().Format(time.RFC3339) + "~"
	}
	for had < q.Last {
		ns, err := table.Numbers(ctx, tx, withKeys, n, name+"@0", before, q.Last)
		if err != nil || len(ns) == 0 {
			return err
		}
		last, err := projection.GetMany(ctx, tx, ns[len(ns)-1:])
		if err != nil {
			return err
		}
		ns, before = slices.DeleteFunc(ns, func(n int64) bool { return n > q.At.Pos }), last[ns[len(ns)-1]].Key
		jobs, err := projection.JobsAt(ctx, tx, ns, q.At)
		if err != nil {
			return err
		}
		for _, n := range ns {
			if j := jobs[n]; j.Schedule == name && !j.Tick.IsZero() {
				found.By[name] = append(found.By[name], Tick{At: j.Tick, To: j.Tick, Count: 1, Pos: n, Job: j})
				had++
			}
		}
	}
	return nil
}

// addSkipped adds the ticks that made no job.
func (q Ticks) addSkipped(ctx context.Context, tx *ledger.Tx, found *TickList) error {
	f := ledger.Filter{Kinds: []event.Kind{event.KindScheduleSkipped}, Until: q.At.Pos, Last: true,
		Limit: maxSkipped}
	asked, first, read := make(map[string]bool), time.Time{}, 0
	for _, s := range q.Of {
		asked[s.Spec.Name] = true
	}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if read++; read == 1 {
			first = e.At
		}
		if b, ok := e.Body.(*event.ScheduleSkipped); ok && asked[b.Name] {
			found.By[b.Name] = append(found.By[b.Name], Tick{At: b.From, To: b.To, Count: b.Count, Pos: e.Pos,
				Why: b.Why, Detail: b.Detail})
		}
	}
	if read == maxSkipped {
		found.Since = first
	}
	return nil
}

// Changes returns what was done to the schedule name by the event pos, the newest first, also to an earlier
// one of that name: the events that set, paused, resumed and removed it.
func Changes(ctx context.Context, tx *ledger.Tx, name string, pos int64) (found []event.Event, err error) {
	kinds := []event.Kind{event.KindScheduleSet, event.KindSchedulePaused, event.KindScheduleResumed,
		event.KindScheduleRemoved}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: kinds, Until: pos}) {
		if err != nil {
			return nil, err
		}
		if Of(e.Body) == name {
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	return found, nil
}
