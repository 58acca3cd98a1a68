package projection

import (
	"context"
	"fmt"
	"math"
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
	if r.Mended, err = tx.MendSchema(ctx, "jobs", "queues", "presence", "kinds", "states"); err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx)
}

// rows makes the rows of jobs and queues right.
func (r *Rebuilt) rows(ctx context.Context, tx *ledger.Tx) error {
	extra, err := extraRows(ctx, tx, 0)
	if err != nil {
		return err
	}
	for _, n := range extra {
		if _, err := tx.Exec(`DELETE FROM jobs WHERE n = ?`, n); err != nil {
			return err
		}
	}
	r.Extra = int64(len(extra))
	f := newFold()
	f.load = func(n, pos int64) (Job, error) { return jobBefore(ctx, tx, n, pos) }
	differ, err := foldAll(ctx, tx, f)
	if err != nil {
		return err
	}
	r.Jobs = f.jobs
	for _, n := range differ {
		j, err := jobBefore(ctx, tx, n, math.MaxInt64)
		if err == nil {
			err = r.mend(ctx, tx, j)
		}
		if err != nil {
			return err
		}
	}
	differing, err := differingQueues(ctx, tx, f.queues)
	if err != nil {
		return err
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
			return err
		}
	}
	return nil
}

// foldAll folds every event, and returns the numbers of the jobs whose rows are not what comes out.
func foldAll(ctx context.Context, tx *ledger.Tx, f *fold) (differ []int64, err error) {
	compared := newComparison(tx, f)
	for batch, err := range tx.Scan(ctx, ledger.Scan{}) {
		if err != nil {
			return nil, err
		}
		for i := range batch {
			e := &batch[i].Event
			j, err := f.before(e)
			if err != nil {
				return nil, err
			}
			name(j, e)
			if err := f.add(j, e); err != nil {
				return nil, fmt.Errorf("event %d: %w", e.Pos, err)
			}
			if j != nil && j.State.Final() {
				if err := compared.end(ctx, j.N); err != nil {
					return nil, err
				}
			}
		}
	}
	return compared.rest(ctx)
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
