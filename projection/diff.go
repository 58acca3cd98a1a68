package projection

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
)

// Diff is what happened between two moments, seen from its ends.
type Diff struct {
	Cells  []DiffCell     // in the order of From, then To
	Gained []ledger.Event // worker_started of the workers that came
	Lost   []ledger.Event // worker_stopped of those that went; reclaimed of those that were not heard of again
}

// DiffCell counts the jobs that were From at the first moment and To at the second, and to which something happened
// in between.
type DiffCell struct {
	From, To ledger.State // From 0: enqueued in between
	Count    int64
	Jobs     []ledger.JobID // the oldest of them
}

// changes are the transitions between two places. They tell the state of each job at both: what the first one came
// from and what the last one led to.
const changes = `SELECT e.pos, e.job, coalesce(e.from_state, 0), e.to_state, e.kind, e.worker FROM events e
WHERE e.pos > ? AND e.pos <= ? AND e.seq IS NOT NULL ORDER BY e.pos`

// Compare tells what happened between two moments; of the jobs of each cell it names up to limit. It reads the
// events in between and nothing else.
func Compare(ctx context.Context, tx *ledger.Tx, from, to Moment, limit int) (d Diff, err error) {
	jobs := make(map[int64][2]ledger.State)
	silent := make(map[int64]int64) // by the number of a worker, the pos of the reclaim since which it did nothing
	rows, err := tx.Query(ctx, changes, from.Pos, to.Pos)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	for rows.Next() {
		var pos, n int64
		var before, after ledger.State
		var kind ledger.Kind
		var worker sql.NullInt64
		if err := rows.Scan(&pos, &n, &before, &after, &kind, &worker); err != nil {
			return d, err
		}
		if states, ok := jobs[n]; ok {
			before = states[0]
		}
		jobs[n] = [2]ledger.State{before, after}
		switch {
		case kind == ledger.KindReclaimed:
			silent[worker.Int64] = pos
		case kind != ledger.KindCancelled: // which is not the worker's doing
			delete(silent, worker.Int64)
		}
	}
	if err := rows.Err(); err != nil {
		return d, err
	}
	if d.Cells, err = cellsOf(ctx, tx, jobs, limit); err != nil {
		return d, err
	}
	return d, d.workers(ctx, tx, from, to, silent)
}

func cellsOf(ctx context.Context, tx *ledger.Tx, jobs map[int64][2]ledger.State, limit int) (cells []DiffCell, err error) {
	byStates := make(map[[2]ledger.State]*DiffCell)
	for _, n := range slices.Sorted(maps.Keys(jobs)) {
		states := jobs[n]
		cell := byStates[states]
		if cell == nil {
			cell = &DiffCell{From: states[0], To: states[1]}
			byStates[states] = cell
		}
		if cell.Count++; len(cell.Jobs) < limit {
			id, err := IDOf(ctx, tx, n)
			if err != nil {
				return nil, err
			}
			cell.Jobs = append(cell.Jobs, id)
		}
	}
	for _, cell := range byStates {
		cells = append(cells, *cell)
	}
	slices.SortFunc(cells, func(a, b DiffCell) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return cells, nil
}

// workers tells which processes came and which went. One that came and stopped in between is neither; one that came
// and fell silent is both.
func (d *Diff) workers(ctx context.Context, tx *ledger.Tx, from, to Moment, silent map[int64]int64) error {
	if from.Pos >= to.Pos {
		return nil
	}
	came, went := make(map[ledger.Worker]ledger.Event), make(map[ledger.Worker]ledger.Event)
	f := ledger.Filter{Kinds: []ledger.Kind{ledger.KindWorkerStarted, ledger.KindWorkerStopped}, After: from.Pos, Until: to.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if e.Kind() == ledger.KindWorkerStarted {
			came[e.Worker] = e
		} else {
			went[e.Worker] = e
		}
	}
	for n, pos := range silent {
		w, err := tx.WorkerOf(ctx, n)
		if err != nil {
			return err
		}
		for e, err := range tx.Events(ctx, ledger.Filter{After: pos - 1, Until: pos}) {
			if err != nil {
				return fmt.Errorf("event %d: %w", pos, err)
			}
			if _, stopped := went[w]; !stopped && came[w].Pos < pos {
				went[w] = e
			}
		}
	}
	for w, e := range came {
		if gone, ok := went[w]; ok && gone.Kind() == ledger.KindWorkerStopped {
			delete(went, w)
		} else {
			d.Gained = append(d.Gained, e)
		}
	}
	for _, e := range went {
		d.Lost = append(d.Lost, e)
	}
	byPos := func(a, b ledger.Event) int { return cmp.Compare(a.Pos, b.Pos) }
	slices.SortFunc(d.Gained, byPos)
	slices.SortFunc(d.Lost, byPos)
	return nil
}
