package find

import (
	"context"
	"iter"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// How much one snapshot gives.
const (
	eventPage   = 5000
	attemptPage = 1000
	jobPage     = 1000
)

// Reader reads lists up to a limit.
type Reader struct {
	Store *ledger.Store
	Limit int // how many things at most; 0: all

	SearchTime time.Duration // how long Jobs looks for more, about; 0: to the end

	Taken int  // how many were read
	More  bool // there are some beyond Limit

	Ended *Ended // the SearchTime was over; nil: it was not
}

// Full reports whether the limit is reached.
func (r *Reader) Full() bool { return r.Limit > 0 && r.Taken == r.Limit }

// Events yields the events that f selects, up to f.Until, which must be set. It moves f.After to the last one
// that it yields.
func (r *Reader) Events(ctx context.Context, f *ledger.Filter) iter.Seq2[event.Event, error] {
	if f.After >= f.Until { // in a filter, until 0 means no end
		return func(func(event.Event, error) bool) {}
	}
	return each(ctx, r, eventPage, func(tx *ledger.Tx, limit int) ([]event.Event, error) {
		page := make([]event.Event, 0, 64)
		f.Limit = limit
		for e, err := range tx.Events(ctx, *f) {
			if err != nil {
				return nil, err
			}
			page = append(page, e)
		}
		return page, nil
	}, func(e event.Event) { f.After = e.Pos })
}

// Attempts yields the claims that q asks for.
func (r *Reader) Attempts(ctx context.Context, q query.Attempts) iter.Seq2[query.Attempt, error] {
	return each(ctx, r, attemptPage, func(tx *ledger.Tx, limit int) ([]query.Attempt, error) {
		q.Limit = limit
		return q.Read(ctx, tx)
	}, func(a query.Attempt) { q.After = a.Pos })
}

// Jobs yields the jobs that q asks for.
func (r *Reader) Jobs(ctx context.Context, q query.Jobs) iter.Seq2[query.Job, error] {
	if r.SearchTime > 0 && (q.Filter.Key == "" || len(q.Filter.Queues) == 0) { // these have an index
		return r.search(ctx, q)
	}
	return r.inWindow(ctx, q)
}

// each yields what read returns, at most size things a page, until a page is short. after hears of each thing
// before it is yielded; the next page begins there.
func each[T any](ctx context.Context, r *Reader, size int, read func(tx *ledger.Tx, limit int) ([]T, error),
	after func(T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			limit := size
			if r.Limit > 0 {
				limit = min(size-1, r.Limit-r.Taken) + 1 // one beyond the limit, to know whether there are more
			}
			page, err := ledger.Read(ctx, r.Store, func(tx *ledger.Tx) ([]T, error) {
				return read(tx, limit)
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, thing := range page {
				if r.Full() {
					r.More = true
					return
				}
				r.Taken++
				after(thing)
				if !yield(thing, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
		}
	}
}

// BeforeLastAttempts returns the pos before the last n claims that q asks for.
func BeforeLastAttempts(ctx context.Context, tx *ledger.Tx, q query.Attempts, n int) (int64, error) {
	q.Limit, q.Last = n, true
	last, err := q.Read(ctx, tx)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].Pos - 1, nil
}
