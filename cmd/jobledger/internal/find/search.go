package find

import (
	"context"
	"iter"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Ended says how far a search came in its time, as an error. All jobs with a greater number than Reached were
// looked at.
type Ended struct {
	Reached int64
	Looked  int64 // at so many of the newest jobs
	Jobs    int64 // that there are
}

func (e *Ended) Error() string { return "the time of the search is over" }

// A search looks at the jobs in windows of their numbers, and ends between two of them. A step is long enough
// that a query costs little per job, and short enough that the search ends in time.
const (
	firstWindow = 64 // numbers
	windowTime  = 50 * time.Millisecond
	widening    = 4 // of the next window after one that took less
	// what one has where payloads are looked at: the next ones may be of 1 MiB each
	payloadWindow = 512
)

// search is Jobs for at most about r.SearchTime.
func (r *Reader) search(ctx context.Context, q query.Jobs) iter.Seq2[query.Job, error] {
	f := q.Filter
	return func(yield func(query.Job, error) bool) {
		began, window := time.Now(), int64(firstWindow)
		newest, err := r.newest(ctx, q.At)
		until := newest
		if f.Until > 0 {
			until = min(until, f.Until)
		}
		if f.Before > 0 {
			until = min(until, f.Before-1)
		}
		for first := true; err == nil && until > f.After; first = false {
			if !first && time.Since(began) >= r.SearchTime {
				r.Ended, err = r.ended(ctx, f.After, until, newest)
				break
			}
			in := q
			in.Filter.After, in.Filter.Until, in.Filter.Before = max(f.After, until-window), until, 0
			windowBegan := time.Now()
			for j, err := range r.inWindow(ctx, in) {
				if !yield(j, err) || err != nil {
					return
				}
			}
			if r.More {
				return
			}
			until = in.Filter.After
			switch took := time.Since(windowBegan); {
			case took < windowTime:
				if window *= widening; AsksPayloads(f) {
					window = min(window, payloadWindow)
				}
			case took > widening*windowTime:
				window = max(window/widening, firstWindow)
			}
		}
		if err != nil {
			yield(query.Job{}, err)
		}
	}
}

// inWindow yields all jobs of a window.
func (r *Reader) inWindow(ctx context.Context, q query.Jobs) iter.Seq2[query.Job, error] {
	return each(ctx, r, jobPage, func(tx *ledger.Tx, limit int) ([]query.Job, error) {
		q.Filter.Limit = limit
		return q.Read(ctx, tx)
	}, func(j query.Job) { q.Filter.Before = j.N })
}

// newest is the greatest number that a job may have.
func (r *Reader) newest(ctx context.Context, asOf *projection.Moment) (pos int64, err error) {
	if asOf != nil {
		return asOf.Pos, nil
	}
	return ledger.Read(ctx, r.Store, func(tx *ledger.Tx) (int64, error) { return tx.Tail(ctx) })
}

// ended says how far a search came that is to look at the jobs after a number up to newest.
func (r *Reader) ended(ctx context.Context, after, reached, newest int64) (*Ended, error) {
	e := &Ended{Reached: reached}
	err := r.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		var counts [3]int64
		for i, pos := range []int64{after, reached, newest} {
			if pos > 0 {
				if counts[i], err = projection.CountUpTo(ctx, tx, pos); err != nil {
					return err
				}
			}
		}
		e.Looked, e.Jobs = counts[2]-counts[1], counts[2]-counts[0]
		return nil
	})
	return e, err
}
