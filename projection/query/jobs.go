package query

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// Jobs asks for jobs, the newest first, at most Filter.Limit of them: now, or at a moment, each with its
// state now.
type Jobs struct {
	Filter projection.Filter
	At     *projection.Moment // nil: now
}

// Job is a job of a list.
type Job struct {
	projection.Then
	Exit projection.Exit // how its command ended when it failed last
}

// Read returns the jobs. The next page has those before the last one: Filter.Before.
func (q Jobs) Read(ctx context.Context, tx *ledger.Tx) ([]Job, error) {
	var page []Job
	var pos int64
	if q.At != nil {
		pos = q.At.Pos
		then, err := projection.ListAsOf(ctx, tx, q.Filter, *q.At)
		if err != nil {
			return nil, err
		}
		for _, j := range then {
			page = append(page, Job{Then: j})
		}
	} else {
		now, err := projection.List(ctx, tx, q.Filter)
		if err != nil {
			return nil, err
		}
		for _, j := range now {
			page = append(page, Job{Then: projection.Then{Job: j}})
		}
	}
	jobs := make([]projection.Job, len(page))
	for i, j := range page {
		jobs[i] = j.Job
	}
	exits, err := projection.LastExits(ctx, tx, jobs, pos)
	for i := range page {
		page[i].Exit = exits[page[i].N]
	}
	return page, err
}

// JobFilter is a user's filter of jobs.
type JobFilter struct {
	projection.Filter
	Bounds []Bound
}

// Bound is one end of a window of jobs, inclusive.
type Bound struct {
	When
	Begin    bool // of the window; else its end
	Finished bool // the window is of when jobs finished, and not of when they were enqueued
	Failed   bool // it is of the failure that the filter asks for
}

// Resolve returns what f means in the ledger of tx. It returns a projection.ArchivedError if a bound is
// before the horizon.
func (f JobFilter) Resolve(ctx context.Context, tx *ledger.Tx) (projection.Filter, error) {
	out := f.Filter
	out.Match = slices.Clone(f.Match)
	for _, b := range f.Bounds {
		pos, err := b.Position(ctx, tx, b.Begin)
		if err != nil {
			return out, err
		}
		at := b.Time
		if b.Finished && b.ByPos {
			m, err := projection.AtPos(ctx, tx, b.Pos)
			if err != nil {
				return out, err
			}
			at = m.At
		}
		switch { // the number of a job is the pos of its first event
		case b.Begin && b.Failed:
			out.FailedAfter = pos
		case b.Begin && b.Finished:
			out.FinishedFrom = slices.MaxFunc([]time.Time{out.FinishedFrom, at}, time.Time.Compare)
		case b.Begin:
			out.After = max(out.After, pos)
		case pos == 0: // before the first event: none
			out.Before = 1
		case out.Until == 0 || pos < out.Until: // a job is enqueued before it ends
			out.Until = pos
		}
		if b.Finished && !b.Begin && (out.FinishedTo.IsZero() || at.Before(out.FinishedTo)) {
			out.FinishedTo = at
		}
		if b.Failed && !b.Begin {
			out.FailedUntil = pos
		}
	}
	return out, nil
}
