package status

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Diff compares the ledger at two moments.
type Diff struct {
	Cells  []DiffCell    // in the order of From, then To
	Gained []event.Event // worker_started of the processes that came
	Lost   []event.Event // worker_stopped of those that went; reclaimed of those that fell silent
	Silent []LostWorker  // fell silent without a reclaim in between
}

// DiffCell counts the jobs that were From at the first moment and To at the second, and to which something
// happened in between.
type DiffCell struct {
	From, To event.State // From 0: enqueued in between
	Count    int64
	Jobs     []event.JobID // the oldest of them
}

// statePair is the state of a job at both moments.
type statePair [2]event.State

// changes are the transitions in a range of pos. They give the state of each job at both ends: from_state of
// its first event and to_state of its last.
const changes = `SELECT e.pos, e.job, coalesce(e.from_state, 0), e.to_state, e.kind, e.worker FROM events e
WHERE e.pos > ? AND e.pos <= ? AND e.seq IS NOT NULL ORDER BY e.pos`

// Compare returns the difference between two moments, with the ids of up to limit jobs per cell. It reads
// only the events in between.
func Compare(ctx context.Context, tx *ledger.Tx, from, to projection.Moment, limit int) (d Diff, err error) {
	jobs := make(map[int64]statePair)
	silent := make(map[int64]int64) // the pos of the reclaim since which a worker, by its number, wrote nothing
	rows, err := tx.Query(ctx, changes, from.Pos, to.Pos)
	var pos, n int64
	var before, after event.State
	var kind event.Kind
	var worker sql.NullInt64
	err = table.Each(rows, err, []any{&pos, &n, &before, &after, &kind, &worker}, func() error {
		if states, ok := jobs[n]; ok {
			before = states[0]
		}
		jobs[n] = statePair{before, after}
		switch {
		case kind == event.KindReclaimed:
			silent[worker.Int64] = pos
		case kind.IsSignOfLife():
			delete(silent, worker.Int64)
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	if d.Cells, err = cellsOf(ctx, tx, jobs, limit); err != nil {
		return d, err
	}
	return d, d.workers(ctx, tx, from, to, silent)
}

func cellsOf(ctx context.Context, tx *ledger.Tx, jobs map[int64]statePair, limit int) (cells []DiffCell,
	err error) {
	byStates := make(map[statePair]*DiffCell)
	for _, n := range slices.Sorted(maps.Keys(jobs)) {
		states := jobs[n]
		cell := byStates[states]
		if cell == nil {
			cell = &DiffCell{From: states[0], To: states[1]}
			byStates[states] = cell
		}
		if cell.Count++; len(cell.Jobs) < limit {
			id, err := projection.IDOf(ctx, tx, n)
			if err != nil {
				return nil, err
			}
			cell.Jobs = append(cell.Jobs, id)
		}
	}
	for _, cell := range byStates {
		cells = append(cells, *cell)
	}
	slices.SortFunc(cells, func(a, b DiffCell) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return cells, nil
}

// workers finds the processes that came and went. One that came and stopped or fell silent in between did
// both.
func (d *Diff) workers(ctx context.Context, tx *ledger.Tx, from, to projection.Moment,
	silent map[int64]int64) error {
	if from.Pos >= to.Pos {
		return nil
	}
	started, stopped := make(map[event.Worker]event.Event), make(map[event.Worker]event.Event)
	kinds := []event.Kind{event.KindWorkerStarted, event.KindWorkerStopped}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: kinds, After: from.Pos, Until: to.Pos}) {
		if err != nil {
			return err
		}
		if e.Kind() == event.KindWorkerStarted {
			started[e.Worker] = e
		} else {
			stopped[e.Worker] = e
		}
	}
	for w, e := range started {
		if stop, ok := stopped[w]; !ok || stop.Pos > e.Pos { // else it only started again
			d.Gained = append(d.Gained, e)
		}
	}
	for w, e := range stopped {
		if start, ok := started[w]; !ok || start.Pos < e.Pos {
			d.Lost = append(d.Lost, e)
		}
	}
	for n, pos := range silent {
		w, err := tx.WorkerOf(ctx, n)
		if err != nil {
			return err
		}
		if _, ok := stopped[w]; ok || started[w].Pos > pos {
			continue
		}
		e, err := eventAt(ctx, tx, pos)
		if err != nil {
			return err
		}
		d.Lost = append(d.Lost, e)
	}
	lost, err := LostWorkers(ctx, tx, from, to)
	if err != nil {
		return err
	}
	for _, w := range lost {
		if !slices.ContainsFunc(d.Lost, func(e event.Event) bool { return e.Worker == w.Worker.Worker }) {
			d.Silent = append(d.Silent, w)
		}
	}
	byPos := func(a, b event.Event) int { return cmp.Compare(a.Pos, b.Pos) }
	slices.SortFunc(d.Gained, byPos)
	slices.SortFunc(d.Lost, byPos)
	return nil
}

// eventAt returns the event at pos.
func eventAt(ctx context.Context, tx *ledger.Tx, pos int64) (found event.Event, err error) {
	if found, _, err = tx.EventAt(ctx, pos); err != nil {
		err = fmt.Errorf("event %d: %w", pos, err)
	}
	return found, err
}
