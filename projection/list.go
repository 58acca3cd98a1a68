package projection

import (
	"context"
	"strings"

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
	Before int64             // only jobs with a smaller number: the next page; 0: from the newest on
	Limit  int               // 0: no limit
}

// List returns the jobs that f selects, the newest first, without payloads and results. Without a queue and a
// key it may read every row: a million take less than a second, and an index for it would cost every
// transition.
func List(ctx context.Context, tx *ledger.Tx, f Filter) ([]Job, error) {
	c := f.conditions()
	c.addStates(`j.state`, f.States)
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

// addStates requires that the expression, with its arguments, is one of states; any if there are none.
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
	if f.Before > 0 {
		c.add(`j.n < ?`, f.Before)
	}
	return c
}
