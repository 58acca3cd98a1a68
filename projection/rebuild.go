package projection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jobledger/ledger"
)

// Rebuilt says what a rebuild changed.
type Rebuilt struct {
	Jobs    int64    // that the events make
	Changed int64    // rows that differed
	Missing int64    // jobs that had no row
	Extra   int64    // rows that belonged to no job
	Queues  int64    // rows of queues that differed
	Mended  []string // tables, indexes, triggers and views that were missing or altered, such as "trigger events_no_update"
}

// Rebuild folds every event and makes the tables say what the events add up to. It writes only rows that differ, and
// first puts right what the schema has and the file has not.
// An event that cannot be folded is an error, and nothing is changed.
func Rebuild(ctx context.Context, tx *ledger.Tx) (r Rebuilt, err error) {
	if r.Mended, err = tx.MendSchema(ctx, "jobs", "queues", "presence"); err != nil {
		return r, err
	}
	extra, err := extraRows(ctx, tx)
	if err != nil {
		return r, err
	}
	for _, n := range extra {
		if _, err := tx.Exec(`DELETE FROM jobs WHERE n = ?`, n); err != nil {
			return r, err
		}
	}
	r.Extra = int64(len(extra))
	f := newFold()
	f.done = func(j Job) (bool, error) {
		stored, ok, err := rawRow(ctx, tx, j.N)
		if err != nil || !ok {
			return false, err
		}
		folded, err := toRow(ctx, tx, j)
		return err == nil && stored == folded, err
	}
	f.load = func(n int64) (Job, error) {
		j, _, err := one(ctx, tx, `SELECT `+columnList+` FROM jobs j WHERE j.n = ?`, n)
		return j, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{}) {
		if err != nil {
			return r, err
		}
		if _, err := f.add(e); err != nil {
			return r, fmt.Errorf("event %d: %w", e.Pos, err)
		}
	}
	r.Jobs = f.jobs
	for _, n := range sortedKeys(f.open) {
		if err := r.mend(ctx, tx, f.open[n]); err != nil {
			return r, err
		}
	}
	differing, err := differingQueues(ctx, tx, f.queues)
	if err != nil {
		return r, err
	}
	for i, d := range differing {
		if i > 0 && d.number == differing[i-1].number {
			continue // one more column of the same row
		}
		r.Queues++
		if q, ok := f.queues[d.queue]; ok {
			err = PutQueue(ctx, tx, q)
		} else {
			_, err = tx.Exec(`DELETE FROM queues WHERE queue = ?`, d.number)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// replaceJob writes a row over whatever stands in its way; a row that it pushes out is another job's, damaged, and
// is written anew in its turn.
var replaceJob = `INSERT OR REPLACE INTO jobs (` + strings.Join(columns[:], ", ") + `) VALUES (?` + strings.Repeat(", ?", width-1) + `)`

// mend makes the row of j right if it is not.
func (r *Rebuilt) mend(ctx context.Context, tx *ledger.Tx, j Job) error {
	stored, ok, err := rawRow(ctx, tx, j.N)
	if err != nil {
		return err
	}
	folded, err := toRow(ctx, tx, j)
	if err != nil || ok && stored == folded {
		return err
	}
	if ok {
		r.Changed++
	} else {
		r.Missing++
	}
	_, err = tx.Exec(replaceJob, slices.Clone(folded[:])...)
	return err
}
