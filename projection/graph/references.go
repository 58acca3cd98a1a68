package graph

import (
	"context"
	"encoding/json"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Reference is a job that another one was to wait for, and how it was to end.
type Reference struct {
	ID event.JobID
	On event.Ending
}

// References returns what j, as it was at m, was to wait for: what it was enqueued with, and the jobs that
// were enqueued to come before it.
func References(ctx context.Context, tx *ledger.Tx, j projection.Job, m projection.Moment) ([]Reference,
	error) {
	found, err := afterOf(j)
	if err != nil {
		return nil, err
	}
	earlier, err := before(ctx, tx, map[event.JobID]bool{j.ID: true}, j.N, m.Pos)
	for _, e := range earlier {
		found = append(found, Reference{e.parent.ID, e.parent.On})
	}
	return found, err
}

// afterOf is what j was enqueued with.
func afterOf(j projection.Job) (found []Reference, err error) {
	for _, text := range j.After {
		var r Reference
		if r.ID, r.On, err = event.ParseReference(text); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// link is one of the references of a child, which has the number n; 0: that is not known.
type link struct {
	parent Reference
	child  event.JobID
	n      int64
}

// preceding finds the jobs that were enqueued before jobs that were there already. Few have the field.
var preceding = event.SQL(`SELECT q.ulid, q.data ->> 'before' FROM events q
WHERE q.kind = {enqueued} AND q.pos > ? AND q.pos <= ? AND q.data ->> 'before' IS NOT NULL ORDER BY q.pos`)

// before returns the jobs that were enqueued after a position, up to another one, to come before some jobs.
func before(ctx context.Context, tx *ledger.Tx, children map[event.JobID]bool, after, until int64) (
	found []link, err error) {
	rows, err := tx.Query(ctx, preceding, after, until)
	var id, text string
	err = table.Each(rows, err, []any{&id, &text}, func() error {
		refs, err := references(text)
		for _, r := range refs {
			if children[r.ID] {
				found = append(found, link{parent: Reference{event.JobID(id), r.On}, child: r.ID})
			}
		}
		return err
	})
	return found, err
}

// references reads a JSON list of references.
func references(text string) (found []Reference, err error) {
	var refs []string
	if err := json.Unmarshal([]byte(text), &refs); err != nil {
		return nil, err
	}
	return afterOf(projection.Job{After: refs})
}

// someParents is about how many jobs one statement finds the children of.
const someParents = 16

var childrenOf = `SELECT j.n, j.id, j.more ->> 'after' FROM jobs j
WHERE j.n > ? AND j.n <= ? AND j.more ->> 'after' IS NOT NULL AND (` +
	strings.TrimSuffix(strings.Repeat(`j.more ->> 'after' LIKE ? OR `, someParents), " OR ") + `)
ORDER BY j.n LIMIT ?`

// children returns the jobs that were enqueued up to a position to wait for one of parents, at most so many,
// the oldest first; more is true if there are others. It costs the jobs that are newer than the oldest of
// parents.
func children(ctx context.Context, tx *ledger.Tx, parents []projection.Job, until int64, most int) (
	found []link, more bool, err error) {
	for len(parents) > 0 {
		some := parents[:min(len(parents), someParents)]
		parents = parents[len(some):]
		asked := make(map[event.JobID]bool)
		oldest := some[0].N
		var patterns []any
		for i := range someParents {
			p := some[min(i, len(some)-1)] // one statement for all numbers
			asked[p.ID], oldest = true, min(oldest, p.N)
			patterns = append(patterns, `%"`+string(p.ID)+`%`)
		}
		args := append([]any{oldest, until}, patterns...)
		rows, err := tx.QueryState(ctx, childrenOf, append(args, most+1)...)
		var n int64
		var id, text string
		jobs := 0
		err = table.Each(rows, err, []any{&n, &id, &text}, func() error {
			if jobs++; jobs > most {
				more = true
				return nil
			}
			refs, err := references(text)
			for _, r := range refs {
				if asked[r.ID] {
					found = append(found, link{r, event.JobID(id), n})
				}
			}
			return err
		})
		if err != nil {
			return nil, false, err
		}
	}
	return found, more, nil
}
