package status

import (
	"cmp"
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/graph"
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

// waitsThen returns up to maxWaits of the things that j, folded from its events up to m, waited for.
func waitsThen(ctx context.Context, tx *ledger.Tx, j projection.Job, events []event.Event,
	m projection.Moment) (waits []Wait, err error) {
	held := false
	for _, e := range events {
		held = graph.Holds(held, e)
	}
	if held {
		waits = []Wait{{Hold: true}}
	}
	refs, err := graph.References(ctx, tx, j, m)
	for _, ref := range refs {
		parent, ok, err := projection.Get(ctx, tx, ref.ID)
		var events []event.Event
		if err == nil && ok {
			parent, events, err = projection.JobAsOf(ctx, tx, parent.N, m)
		}
		if err != nil {
			return nil, err
		}
		if parent.N != 0 && !graph.HasMet(events, ref.On, j.N) {
			waits = append(waits, Wait{Job: parent, On: ref.On})
		}
	}
	slices.SortStableFunc(waits, func(a, b Wait) int { return cmp.Compare(a.Job.N, b.Job.N) }) // as waitsNow
	return waits[:min(maxWaits, len(waits))], err
}
