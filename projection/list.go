package projection

import (
	"context"
	"strings"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Filter says which jobs to list; the zero Filter is all of them.
type Filter struct {
	States []ledger.State    // none: all
	Queues []string          // none: all
	Tags   map[string]string // jobs that have all of these
	Key    string            // "": any, or none
	Before int64             // jobs with a number less than this: the next page; 0: from the newest on
	Limit  int               // at most so many; 0: no limit
}

// List returns the jobs that f selects, the newest first, without payloads and results. Without a key and its queue
// it may look at every row: a million take less than a second, and an index for it would cost every transition.
func List(ctx context.Context, tx *ledger.Tx, f Filter) ([]Job, error) {
	where, args := f.where()
	query := `SELECT ` + table.List + ` FROM jobs j` + where + ` ORDER BY j.n DESC`
	if f.Limit > 0 {
		query, args = query+` LIMIT ?`, append(args, f.Limit)
	}
	return queryJobs(ctx, tx, query, args...)
}

func (f Filter) where() (string, []any) {
	var terms []string
	var args []any
	add := func(term string, values ...any) {
		terms, args = append(terms, term), append(args, values...)
	}
	if len(f.States) > 0 {
		for _, s := range f.States {
			args = append(args, int64(s))
		}
		add(`j.state IN (` + marks(len(f.States)) + `)`)
	}
	if len(f.Queues) > 0 {
		for _, q := range f.Queues {
			args = append(args, q)
		}
		add(`j.queue IN (SELECT n FROM names WHERE name IN (` + marks(len(f.Queues)) + `))`)
	}
	for name, value := range f.Tags {
		add(`EXISTS (SELECT 1 FROM json_each(j.more, '$.tags') t WHERE t.key = ? AND t.value = ?)`, name, value)
	}
	if f.Key != "" {
		add(`j.key = ?`, f.Key)
	}
	if f.Before > 0 {
		add(`j.n < ?`, f.Before)
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
