package projection

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Departed is how many jobs have left the ledger for its archive. The zero value: none.
type Departed struct {
	By      map[string]map[event.State]int64 // by queue, and the state in which they ended
	Unnamed int64                            // whose removed events do not say in which queues they were
}

// Jobs returns how many jobs those are.
func (d Departed) Jobs() int64 { return d.Unnamed + d.Of(nil, nil) }

// Of returns how many jobs of the queues that are in, with one of the states, have left, but for the unnamed
// ones; a nil function and no states mean all.
func (d Departed) Of(in func(queue string) bool, states []event.State) (jobs int64) {
	for queue, counts := range d.By {
		if in != nil && !in(queue) {
			continue
		}
		if len(states) == 0 {
			for _, n := range counts {
				jobs += n
			}
		}
		for _, s := range states {
			jobs += counts[s]
		}
	}
	return jobs
}

// Add adds the jobs of a removed event.
func (d *Departed) Add(b *event.Removed) {
	if len(b.Left) == 0 {
		d.Unnamed += b.Jobs
	}
	for _, l := range b.Left {
		d.AddJobs(l.Queue, event.SucceededState, l.Succeeded)
		d.AddJobs(l.Queue, event.FailedState, l.Failed)
		d.AddJobs(l.Queue, event.CancelledState, l.Cancelled)
	}
}

// Name gives the queue and state of jobs that were unnamed.
func (d *Departed) Name(left []event.Left) {
	for _, l := range left {
		d.Unnamed -= l.Jobs()
	}
	d.Add(&event.Removed{Left: left})
}

// Left returns the jobs of d that have a queue as a removed event has them.
func (d Departed) Left() (left []event.Left) {
	for _, queue := range slices.Sorted(maps.Keys(d.By)) {
		of := d.By[queue]
		l := event.Left{Queue: queue, Succeeded: of[event.SucceededState], Failed: of[event.FailedState],
			Cancelled: of[event.CancelledState]}
		if l.Jobs() > 0 {
			left = append(left, l)
		}
	}
	return left
}

// Unsaid returns the queues and states of the unnamed jobs of d, given those of all jobs that left; ok is
// false if the numbers contradict each other.
func (d Departed) Unsaid(all Departed) (left []event.Left, ok bool) {
	var rest Departed
	ok = all.Jobs() == d.Jobs()
	for queue, counts := range all.By {
		for state, n := range counts {
			rest.AddJobs(queue, state, n-d.By[queue][state])
			ok = ok && n >= d.By[queue][state]
		}
	}
	return rest.Left(), ok
}

// AddJobs adds jobs of a queue that ended in this state.
func (d *Departed) AddJobs(queue string, s event.State, jobs int64) {
	if jobs == 0 {
		return
	}
	if d.By == nil {
		d.By = make(map[string]map[event.State]int64)
	}
	if d.By[queue] == nil {
		d.By[queue] = make(map[event.State]int64)
	}
	d.By[queue][s] += jobs
}

// Equal reports whether d and o are the same.
func (d Departed) Equal(o Departed) bool {
	same := func(a, b map[event.State]int64) bool { return maps.Equal(a, b) }
	return d.Unnamed == o.Unnamed && maps.EqualFunc(d.By, o.By, same)
}

// HasLeft returns how many jobs have left the ledger. It costs a row for each queue and state. A whole copy
// has lost none, and neither has what an import made.
func HasLeft(ctx context.Context, tx *ledger.Tx) (d Departed, err error) {
	h, err := Horizon(ctx, tx)
	if err != nil || h == 0 {
		return d, err
	}
	return StoredDeparted(ctx, tx)
}

// Absent says how many jobs a list of those in the ledger may lack, because they have left it. The zero
// value: none.
type Absent struct {
	Jobs  int64
	Until time.Time // they had ended by then

	Counted bool // a count as of a moment has them, and only one of now lacks them
}

// AbsentOf returns how many jobs have left the ledger that were in the queues that are in, with one of the
// states; a nil function and no states mean all. If in is nil, all jobs whose queue is not known count.
func AbsentOf(ctx context.Context, tx *ledger.Tx, in func(queue string) bool, states []event.State) (a Absent,
	err error) {
	left, err := HasLeft(ctx, tx)
	if err != nil {
		return a, err
	}
	if a.Jobs = left.Of(in, states); in == nil && (len(states) == 0 || slices.ContainsFunc(states,
		event.State.Final)) {
		a.Jobs += left.Unnamed
	}
	if a.Jobs > 0 {
		a.Until, err = HorizonTime(ctx, tx)
	}
	return a, err
}

// AbsentFrom returns how many jobs that a list by f lacks. It is the number by queue and state, and more than
// may match where f selects by something else.
func AbsentFrom(ctx context.Context, tx *ledger.Tx, f Filter) (a Absent, err error) {
	h, at, err := horizonAt(ctx, tx)
	if err != nil || f.After >= h || f.FinishedFrom.UnixMicro() > at && !f.FinishedFrom.IsZero() {
		return a, err
	}
	var in func(string) bool
	if len(f.Queues) > 0 {
		in = func(queue string) bool { return slices.Contains(f.Queues, queue) }
	}
	a, err = AbsentOf(ctx, tx, in, f.States)
	return a, err
}

// StoredDeparted returns the table departed.
func StoredDeparted(ctx context.Context, tx *ledger.Tx) (d Departed, err error) {
	rows, err := tx.Query(ctx, `SELECT queue, state, jobs FROM departed`)
	var number, jobs int64
	var state event.State
	err = table.Each(rows, err, []any{&number, &state, &jobs}, func() error {
		if number == 0 {
			d.Unnamed += jobs
			return nil
		}
		queue, err := tx.NameOf(ctx, number)
		if err != nil {
			return err
		}
		d.AddJobs(queue, state, jobs)
		return nil
	})
	return d, err
}

const depart = `INSERT INTO departed AS d (queue, state, jobs) VALUES (?, ?, ?)
ON CONFLICT (queue, state) DO UPDATE SET jobs = d.jobs + excluded.jobs`

// Depart adds d to the table departed.
func Depart(ctx context.Context, tx *ledger.Tx, d Departed) error {
	for queue, counts := range d.By {
		number, err := tx.Name(ctx, queue)
		if err != nil {
			return err
		}
		for state, jobs := range counts {
			if _, err := tx.Exec(depart, number, int64(state), jobs); err != nil {
				return err
			}
		}
	}
	if d.Unnamed == 0 {
		return nil
	}
	_, err := tx.Exec(depart, 0, 0, d.Unnamed)
	return err
}

// RepairDeparted makes the table departed what the removed events say. It reports whether it was not.
func RepairDeparted(ctx context.Context, tx *ledger.Tx) (repaired bool, err error) {
	r, err := Removed(ctx, tx)
	if err != nil {
		return false, err
	}
	stored, err := StoredDeparted(ctx, tx)
	if err != nil || stored.Equal(r.Departed) {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM departed`); err != nil {
		return false, err
	}
	return true, Depart(ctx, tx, r.Departed)
}
