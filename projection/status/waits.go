package status

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/internal/table"
)

// maxWaits is how many jobs an explanation names that a job waits for.
const maxWaits = 100

// Wait is one thing that a job waits for.
type Wait struct {
	Job  projection.Job // zero: a hold
	On   event.Ending
	Hold bool
}

// waitsNow returns up to maxWaits of the things that j waits for.
func waitsNow(ctx context.Context, tx *ledger.Tx, j projection.Job) (waits []Wait, err error) {
	edges, err := deps.Of(ctx, tx, j.N, maxWaits)
	if err != nil {
		return nil, err
	}
	var ns []int64
	for _, e := range edges {
		if e.Parent != 0 {
			ns = append(ns, e.Parent)
		}
	}
	jobs, err := projection.GetMany(ctx, tx, ns)
	for _, e := range edges {
		waits = append(waits, Wait{Job: jobs[e.Parent], On: e.On, Hold: e.Parent == 0})
	}
	return waits, err
}

// preceding finds the jobs that were enqueued before a job that is there already. Few have the field.
var preceding = event.SQL(`SELECT q.ulid, q.data ->> 'before' FROM events q
WHERE q.kind = {enqueued} AND q.pos > ? AND q.pos <= ? AND q.data ->> 'before' LIKE ? ORDER BY q.pos`)

// waitsThen returns up to maxWaits of the things that j waited for at m, of whose events it was the job.
func waitsThen(ctx context.Context, tx *ledger.Tx, j projection.Job, events []event.Event,
	m projection.Moment) (waits []Wait, err error) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case *event.Enqueued:
			if b.Hold {
				waits = []Wait{{Hold: true}}
			}
		case *event.Unblocked:
			if b.Hold {
				waits = nil
			}
		}
	}
	add := func(id event.JobID, on event.Ending) error {
		parent, ok, err := projection.Get(ctx, tx, id)
		if err == nil && ok {
			parent, _, err = projection.JobAsOf(ctx, tx, parent.N, m)
		}
		if err == nil && parent.N != 0 && !on.Meets(parent.State) {
			waits = append(waits, Wait{Job: parent, On: on})
		}
		return err
	}
	for _, text := range j.After {
		id, on, err := event.ParseReference(text)
		if err == nil {
			err = add(id, on)
		}
		if err != nil {
			return nil, err
		}
	}
	found, err := before(ctx, tx, j, m)
	for _, f := range found {
		if err == nil {
			err = add(f.id, f.on)
		}
	}
	slices.SortStableFunc(waits, func(a, b Wait) int { return cmp.Compare(a.Job.N, b.Job.N) }) // as waitsNow
	return waits[:min(maxWaits, len(waits))], err
}

type reference struct {
	id event.JobID
	on event.Ending
}

// before returns the jobs that were enqueued before j, up to m.
func before(ctx context.Context, tx *ledger.Tx, j projection.Job, m projection.Moment) (found []reference,
	err error) {
	rows, err := tx.Query(ctx, preceding, j.N, m.Pos, "%"+string(j.ID)+"%")
	var id, text string
	err = table.Each(rows, err, []any{&id, &text}, func() error {
		for on := event.OnSucceeded; on <= event.OnFinished; on++ {
			if containsReference(text, event.FormatReference(j.ID, on)) {
				found = append(found, reference{event.JobID(id), on})
			}
		}
		return nil
	})
	return found, err
}

// containsReference reports whether the JSON list text has ref.
func containsReference(text, ref string) bool {
	var refs []string
	return json.Unmarshal([]byte(text), &refs) == nil && slices.Contains(refs, ref)
}
