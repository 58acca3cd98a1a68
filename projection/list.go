package projection

import (
	"context"
	"math"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Filter selects jobs to list; the zero Filter selects all of them.
type Filter struct {
	States []event.State     // none: all
	Queues []string          // none: all
	Tags   map[string]string // all of these must match
	Key    string            // "": all
	Group  string            // "": all
	After  int64             // only jobs with a greater number: those enqueued after that pos; 0: all
	Until  int64             // only jobs with a number up to this one; 0: all
	Before int64             // only jobs with a smaller number: the next page; 0: from the newest on
	Limit  int               // 0: no limit

	FinishedFrom time.Time // ended at this time or later; zero: all
	FinishedTo   time.Time // ended at this time or earlier; zero: all
	Error        string    // with this error code; "": all
	Exit         *int      // whose last failure had this exit code; nil: all
	Host         string    // whose owner, or last owner, ran on this host, queued again or not; "": all

	Failure     string // that met a failure with this fingerprint; "": all
	LastFailure string // whose last failure has it, not retried by an operator nor succeeded since; "": all
	FailedAfter int64  // that failure came after this pos; 0: whenever
	FailedUntil int64  // and up to this one; 0: whenever

	Match []Match // all of these must hold too
}

// List returns the jobs that f selects, the newest first, without payloads and results. After, Until
// and Before limit what it reads. Otherwise, without a queue and a key it may read every row: a million take
// less than a second, and an index for it would cost every transition.
func List(ctx context.Context, tx *ledger.Tx, f Filter) (found []Job, err error) {
	if !f.compares() {
		return f.rows(ctx, tx)
	}
	limit := f.Limit
	f.Limit = asOfPage
	for {
		page, err := f.rows(ctx, tx)
		if err != nil {
			return nil, err
		}
		failed, err := f.withFailures(ctx, tx, page, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		for _, j := range page {
			if !f.matches(j) || failed != nil && !failed[j.N] {
				continue
			}
			if has, err := f.payloadMatches(ctx, tx, j); err != nil {
				return nil, err
			} else if !has {
				continue
			}
			if found = append(found, j); len(found) == limit {
				return found, nil
			}
		}
		if len(page) < f.Limit {
			return found, nil
		}
		f.Before = page[len(page)-1].N
	}
}

// rows is List for all but what is compared job by job.
func (f Filter) rows(ctx context.Context, tx *ledger.Tx) ([]Job, error) {
	c := f.conditions()
	c.addStates(`j.state`, f.States)
	f.addChanging(&c)
	f.addNow(&c)
	return c.list(ctx, tx, f.Limit)
}

// conditions are the terms of a WHERE clause on jobs j, all of which must hold, and their arguments.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

// addStates requires that the expression, with its arguments, is one of states; without states it requires
// nothing.
func (c *conditions) addStates(expression string, states []event.State, args ...any) {
	if len(states) == 0 {
		return
	}
	for _, s := range states {
		args = append(args, int64(s))
	}
	c.add(expression+` IN (`+table.Placeholders(len(states))+`)`, args...)
}

// list returns the jobs that meet the conditions, the newest first; limit 0 means all.
func (c *conditions) list(ctx context.Context, tx *ledger.Tx, limit int) ([]Job, error) {
	query, args := `SELECT `+table.List+` FROM jobs j`, c.args
	if len(c.terms) > 0 {
		query += ` WHERE ` + strings.Join(c.terms, ` AND `)
	}
	query += ` ORDER BY j.n DESC`
	if limit > 0 {
		query, args = query+` LIMIT ?`, append(args, limit)
	}
	return queryJobs(ctx, tx, query, args...)
}

// conditions returns what f says of columns that never change, and of the numbers of jobs: all but the
// states.
func (f Filter) conditions() (c conditions) {
	if len(f.Queues) > 0 {
		var names []any
		for _, q := range f.Queues {
			names = append(names, q)
		}
		c.add(`j.queue IN (SELECT n FROM names WHERE name IN (`+table.Placeholders(len(names))+`))`, names...)
	}
	for name, value := range f.Tags {
		c.add(`EXISTS (SELECT 1 FROM json_each(j.more, '$.tags') t WHERE t.key = ? AND t.value = ?)`, name, value)
	}
	if f.Key != "" {
		c.add(`j.key = ?`, f.Key)
	}
	if f.Group != "" {
		c.add(`j.more ->> 'group' = ?`, f.Group)
	}
	if f.After > 0 {
		c.add(`j.n > ?`, f.After)
	}
	if f.Until > 0 {
		c.add(`j.n <= ?`, f.Until)
	}
	if f.Before > 0 {
		c.add(`j.n < ?`, f.Before)
	}
	return c
}

// exitIs is the condition on the exit code of the last failure of job j.
var exitIs = event.SQL(`j.error_code IS NOT NULL AND
    (SELECT CAST(e.data ->> 'exit_code' AS BIGINT) FROM events e
    WHERE e.job = j.n AND e.seq > 0 AND e.kind IN ({failed}, {reclaimed}) ORDER BY e.seq DESC LIMIT 1) = ?`)

// addChanging adds what f says of columns that change while a job lives.
func (f Filter) addChanging(c *conditions) {
	if !f.FinishedFrom.IsZero() {
		c.add(`j.finished_at >= ?`, event.Micros(f.FinishedFrom))
	}
	if !f.FinishedTo.IsZero() {
		c.add(`j.finished_at <= ?`, event.Micros(f.FinishedTo))
	}
	if f.Error != "" {
		c.add(`j.error_code = ?`, f.Error)
	}
	if f.Host != "" {
		c.add(hostIs, f.Host)
	}
	if f.Exit != nil {
		c.add(exitIs, *f.Exit)
	}
	if f.LastFailure != "" {
		c.add(`j.error_code IS NOT NULL`)
	}
}

// changing reports whether f says something of columns that change while a job lives, or what is compared
// job by job.
func (f Filter) changing() bool {
	return !f.FinishedFrom.IsZero() || !f.FinishedTo.IsZero() || f.Error != "" || f.Host != "" ||
		f.Exit != nil || f.compares()
}

// selects is addChanging for a job in memory: exit is of its last failure, and onHost says whether its last
// claim was on f.Host.
func (f Filter) selects(j Job, exit Exit, onHost bool) bool {
	switch {
	case !f.FinishedFrom.IsZero() && (j.FinishedAt.IsZero() || j.FinishedAt.Before(f.FinishedFrom)),
		!f.FinishedTo.IsZero() && (j.FinishedAt.IsZero() || j.FinishedAt.After(f.FinishedTo)),
		f.Error != "" && j.ErrorCode != f.Error,
		f.Host != "" && !onHost,
		f.Exit != nil && (exit.Code == nil || *exit.Code != *f.Exit),
		!f.matches(j):
		return false
	}
	return true
}
