// Package bulk carries out an operator's command on every job that a filter selects.
//
//	act := bulk.Act{Service: service, Actor: actor, Filter: filter, Command: command}
//	n, err := act.Count(ctx)
//	tally, err := act.Run(ctx, nil)
//
// Jobs are changed in chunks of one transaction each, with an event for each job, the newest first. A job
// that was changed no longer matches, so an act that was cut off is continued by the same act once more. The
// package prints nothing.
//
// Held by TestRunContinues, TestRunPassesJobsThatChanged and TestSpreadIsEven here, and by
// TestScripts/bulk of the program.
package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// chunk is how many jobs one transaction changes. Others wait for the write lock that long.
const chunk = 500

// Act is a command on many jobs.
type Act struct {
	Service *commands.Service
	Actor   string
	Filter  projection.Filter                     // its States are those in which the command is possible
	Skip    func(projection.Job) bool             // selected jobs that are left out; nil: none
	Command func(projection.Job) commands.Command // of one job
}

// Tally is what became of the jobs of an act.
type Tally struct {
	Done    int   // changed
	Already int   // that were so already
	Passed  int   // that changed after they were selected, so that the command was not possible any more
	Failed  int   // whose row or history is damaged, say
	Err     error // of the first that failed
}

// Count returns how many jobs are selected. A later Run leaves out jobs that are enqueued after this.
func (a *Act) Count(ctx context.Context) (n int, err error) {
	newest := int64(0)
	for page, err := range a.pages(ctx) {
		if err != nil {
			return n, err
		}
		n, newest = n+len(page), max(newest, page[0].N)
	}
	if newest > 0 {
		a.Filter.Until = newest
	}
	return n, nil
}

// Run carries out the command. It calls done for each job that was changed, after the commit; nil: not. With
// an error the tally counts what is durable for certain; the chunk in which it occurred may be.
func (a *Act) Run(ctx context.Context, done func(before, after projection.Job) error) (t Tally, err error) {
	for page, err := range a.pages(ctx) {
		if err != nil {
			return t, err
		}
		ops := make([]commands.Op, len(page))
		for i, j := range page {
			ops[i] = commands.Op{Job: j, Command: a.Command(j)}
		}
		results, err := a.Service.ApplyBatch(ctx, a.Actor, ops)
		if err != nil {
			return t, err
		}
		for i, r := range results {
			if err := t.add(page[i], r, done); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

func (t *Tally) add(before projection.Job, r commands.Result,
	done func(before, after projection.Job) error) error {
	switch {
	case errors.Is(r.Err, commands.ErrConflict), errors.Is(r.Err, commands.ErrNoJob):
		t.Passed++
	case r.Err != nil:
		if t.Failed++; t.Err == nil {
			t.Err = r.Err
		}
	case r.Job.Seq == before.Seq && r.Job.Erased == before.Erased:
		t.Already++
	default:
		t.Done++
		if done != nil {
			return done(before, r.Job)
		}
	}
	return nil
}

// pages yields the selected jobs, at most chunk at once and never none, each page on a snapshot of its own.
func (a *Act) pages(ctx context.Context) iter.Seq2[[]projection.Job, error] {
	f := a.Filter
	f.Limit = chunk
	return func(yield func([]projection.Job, error) bool) {
		for {
			page, err := ledger.Read(ctx, a.Service.Store, func(tx *ledger.Tx) ([]projection.Job, error) {
				return projection.List(ctx, tx, f)
			})
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 {
				return
			}
			last := len(page) < chunk
			f.Before = page[len(page)-1].N
			selected := page[:0]
			for _, j := range page {
				if a.Skip == nil || !a.Skip(j) {
					selected = append(selected, j)
				}
			}
			if len(selected) > 0 && !yield(selected, nil) || last {
				return
			}
		}
	}
}

// Spread returns the delay of one of many jobs that are to run within d: a share of d by a hash of its id, so
// that a continued act gives the job the same delay.
func Spread(id event.JobID, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(id)) // a hash that also spreads ids which differ in their last letter only
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return time.Duration(share * float64(d)).Truncate(time.Microsecond)
}
