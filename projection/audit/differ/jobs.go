package differ

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
)

// Jobs finds the rows of jobs that differ from the fold, many rows per query. It removes the jobs that
// it compares from the fold, and keeps only the numbers of those that differ.
type Jobs struct {
	Tx      *ledger.Tx     // of the next calls
	Differs map[int64]bool // rows that are missing, or not what they should be
	fold    *fold.Fold
	ended   []int64     // compared when there are enough
	stored  []table.Row // of one query
}

// Chunk is how many rows one query reads, and how many jobs Compare takes.
const Chunk = 256

var rowsByNumber = `SELECT ` + table.List + ` FROM jobs j WHERE j.n IN (?` +
	strings.Repeat(", ?", Chunk-1) + `) ORDER BY j.n`

// NewJobs returns a comparison with the jobs of f.
func NewJobs(tx *ledger.Tx, f *fold.Fold) *Jobs {
	return &Jobs{Tx: tx, fold: f, Differs: make(map[int64]bool)}
}

// End adds a job that has just ended.
func (c *Jobs) End(ctx context.Context, n int64) error {
	if c.ended = append(c.ended, n); len(c.ended) < Chunk {
		return nil
	}
	ended := c.ended
	c.ended = c.ended[:0]
	slices.Sort(ended)
	ended = slices.DeleteFunc(slices.Compact(ended), func(n int64) bool {
		j, ok := c.fold.Open[n]
		return !ok || !j.State.Final() // it was retried
	})
	return c.Compare(ctx, ended)
}

// Rest compares the jobs that are left in the fold, and returns the numbers of all jobs whose rows differ.
func (c *Jobs) Rest(ctx context.Context) ([]int64, error) {
	left := sortedKeys(c.fold.Open)
	for len(left) > 0 {
		chunk := left[:min(Chunk, len(left))]
		if err := c.Compare(ctx, chunk); err != nil {
			return nil, err
		}
		left = left[len(chunk):]
	}
	return c.Numbers(), nil
}

// Numbers returns the numbers of the jobs whose rows differ, so far.
func (c *Jobs) Numbers() []int64 { return sortedKeys(c.Differs) }

// Compare compares up to Chunk jobs, in the order of their numbers, and removes them from the fold.
func (c *Jobs) Compare(ctx context.Context, ns []int64) error {
	if len(ns) == 0 {
		return nil
	}
	args := make([]any, Chunk)
	for i := range args {
		args[i] = ns[min(i, len(ns)-1)] // one statement for all sizes
	}
	c.stored = c.stored[:0]
	err := c.Tx.Each(ctx, func(values []driver.Value) bool {
		c.stored = append(c.stored, table.Row{})
		for i, v := range values {
			c.stored[len(c.stored)-1][i] = v
		}
		return true
	}, rowsByNumber, args...)
	if err != nil {
		return err
	}
	rest := c.stored
	for _, n := range ns {
		folded, err := projection.RowOf(ctx, c.Tx, *c.fold.Open[n])
		if err != nil {
			return err
		}
		for len(rest) > 0 && rest[0][0].(int64) < n {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] == folded {
			delete(c.Differs, n)
		} else {
			c.Differs[n] = true
		}
		delete(c.fold.Open, n)
	}
	return nil
}

// Row reads the row of job n as it is stored, column by column.
func Row(ctx context.Context, tx *ledger.Tx, n int64) (r table.Row, ok bool, err error) {
	rows, err := tx.Query(ctx, `SELECT `+table.List+` FROM jobs j WHERE j.n = ?`, n)
	into := make([]any, table.Width)
	for i := range into {
		into[i] = &r[i]
	}
	ok, err = table.First(rows, err, into...)
	return r, ok, err
}

var extra = event.SQL(`SELECT n FROM jobs j
WHERE n > ? AND NOT EXISTS (SELECT 1 FROM events e WHERE e.pos = j.n AND e.kind = {enqueued})`)

// Extra returns the numbers, greater than after, of the rows of jobs without an enqueued event.
func Extra(ctx context.Context, tx *ledger.Tx, after int64) ([]int64, error) {
	return table.Numbers(ctx, tx, extra, after)
}
