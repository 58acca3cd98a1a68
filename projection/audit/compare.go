package audit

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// comparison finds the rows of jobs that differ from the fold, many rows per query. It removes the jobs that
// it compares from the fold, and keeps only the numbers of those that differ.
type comparison struct {
	tx      *ledger.Tx
	fold    *fold
	ended   []int64        // compared when there are enough
	differs map[int64]bool // rows that are missing, or not what they should be
	stored  []table.Row    // of one query
}

// compareChunk is how many rows one query reads.
const compareChunk = 256

var rowsByNumber = `SELECT ` + table.List + ` FROM jobs j WHERE j.n IN (?` +
	strings.Repeat(", ?", compareChunk-1) + `) ORDER BY j.n`

func newComparison(tx *ledger.Tx, f *fold) *comparison {
	return &comparison{tx: tx, fold: f, differs: make(map[int64]bool)}
}

// end adds a job that has just ended.
func (c *comparison) end(ctx context.Context, n int64) error {
	if c.ended = append(c.ended, n); len(c.ended) < compareChunk {
		return nil
	}
	ended := c.ended
	c.ended = c.ended[:0]
	slices.Sort(ended)
	ended = slices.DeleteFunc(slices.Compact(ended), func(n int64) bool {
		j, ok := c.fold.open[n]
		return !ok || !j.State.Final() // it was retried
	})
	return c.compare(ctx, ended)
}

// rest compares the jobs that are left in the fold, and returns the numbers of all jobs whose rows differ.
func (c *comparison) rest(ctx context.Context) ([]int64, error) {
	left := sortedKeys(c.fold.open)
	for len(left) > 0 {
		chunk := left[:min(compareChunk, len(left))]
		if err := c.compare(ctx, chunk); err != nil {
			return nil, err
		}
		left = left[len(chunk):]
	}
	return sortedKeys(c.differs), nil
}

// compare compares up to compareChunk jobs, in the order of their numbers, and removes them from the fold.
func (c *comparison) compare(ctx context.Context, ns []int64) error {
	if len(ns) == 0 {
		return nil
	}
	args := make([]any, compareChunk)
	for i := range args {
		args[i] = ns[min(i, len(ns)-1)] // one statement for all sizes
	}
	c.stored = c.stored[:0]
	err := c.tx.Each(ctx, func(values []driver.Value) bool {
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
		folded, err := projection.RowOf(ctx, c.tx, *c.fold.open[n])
		if err != nil {
			return err
		}
		for len(rest) > 0 && rest[0][0].(int64) < n {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] == folded {
			delete(c.differs, n)
		} else {
			c.differs[n] = true
		}
		delete(c.fold.open, n)
	}
	return nil
}

// rawRow reads the row of job n as it is stored, column by column.
func rawRow(ctx context.Context, tx *ledger.Tx, n int64) (r table.Row, ok bool, err error) {
	rows, err := tx.Query(ctx, `SELECT `+table.List+` FROM jobs j WHERE j.n = ?`, n)
	if err != nil {
		return r, false, err
	}
	defer rows.Close()
	if ok = rows.Next(); ok {
		into := make([]any, table.Width)
		for i := range into {
			into[i] = &r[i]
		}
		err = rows.Scan(into...)
	}
	if err == nil {
		err = rows.Err()
	}
	return r, ok, err
}

// extraRows returns the numbers, greater than after, of the rows of jobs without an enqueued event.
func extraRows(ctx context.Context, tx *ledger.Tx, after int64) (extra []int64, err error) {
	rows, err := tx.Query(ctx, `SELECT n FROM jobs j
WHERE n > ? AND NOT EXISTS (SELECT 1 FROM events e WHERE e.pos = j.n AND e.kind = 1)`, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		extra = append(extra, n)
	}
	return extra, rows.Err()
}
