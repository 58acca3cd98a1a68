package projection

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Want selects the jobs that a worker may take.
type Want struct {
	Queues       []string
	Version      string
	Capabilities []string
	Except       []event.JobID // jobs to skip
}

// Search finds the next jobs in claiming order: priority (higher first), run_at, id. It reads the head of
// each lane that fits, so its cost does not grow with jobs that do not fit, are scheduled for later, or have
// ended.
type Search struct {
	tx      *ledger.Tx
	want    Want
	now     time.Time
	limit   int
	cache   *claimCache
	fitting []*laneCursor
	lanes   []*laneCursor // those of fitting that may still have a job
	jobs    []Job
	damaged error
}

// Seek begins a search for up to limit queued jobs that fit and whose run_at has come. Until Jobs is called,
// nothing may be written that queues a job or changes a queued one.
func Seek(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) (_ *Search, err error) {
	s := &Search{tx: tx, want: want, now: now, limit: limit}
	if len(want.Except) > 0 {
		tx.Cache().Invalidate() // a search that skips jobs must not move the cached positions past them
		s.cache = newClaimCache()
	} else if s.cache, err = loadClaimCache(ctx, tx); err != nil {
		return nil, err
	}
	s.fitting, s.damaged, err = fittingLanes(ctx, tx, s.cache, want)
	if err != nil {
		return nil, err
	}
	due := func(l *laneCursor) bool { return l.runAt <= event.Micros(now) }
	for _, l := range s.fitting {
		if due(l) {
			s.lanes = append(s.lanes, l)
		}
	}
	if len(s.lanes) > 0 && limit > 0 {
		first := s.lanes[s.firstLane()]
		err = first.prefetch(tx, s.cache, now, s.readSize(first))
	}
	return s, err
}

// firstLane returns the index of the lane with the next job in claiming order.
func (s *Search) firstLane() (first int) {
	for i := range s.lanes {
		if s.lanes[i].compare(s.lanes[first]) < 0 {
			first = i
		}
	}
	return first
}

// readSize returns how many jobs of l to read at once: fewer where many lanes of its priority share what is
// left.
func (s *Search) readSize(l *laneCursor) int {
	rivals := 0
	for _, other := range s.lanes {
		if other.priority == l.priority {
			rivals++
		}
	}
	left := s.limit - len(s.jobs)
	return min(left, 1+2*left/rivals)
}

// Jobs returns the jobs that the search finds, with their payloads. A damaged job is skipped; if no other job
// is left, the error is a DamagedJobError.
func (s *Search) Jobs(ctx context.Context) ([]Job, error) {
	for len(s.lanes) > 0 && len(s.jobs) < s.limit {
		first := s.firstLane()
		l := s.lanes[first]
		switch {
		case len(l.buffered) > 0:
			if !slices.Contains(s.want.Except, l.buffered[0].ID) {
				s.jobs = append(s.jobs, l.buffered[0])
			}
			l.advance()
		case l.exhausted:
			s.lanes = slices.Delete(s.lanes, first, first+1)
			l.drain(s.now)
		default:
			if err := s.fill(ctx, l); err != nil {
				return nil, err
			}
		}
	}
	for _, l := range s.fitting {
		l.endSearch()
	}
	s.cache.speculation = speculation{}
	if len(s.lanes) == 0 && s.limit > 0 {
		s.cache.speculate(s.fitting, s.limit, s.now)
	}
	if len(s.jobs) == 0 {
		return nil, s.damaged
	}
	return s.jobs, nil
}

// fill buffers the next jobs of l, without those that cannot be read.
func (s *Search) fill(ctx context.Context, l *laneCursor) error {
	limit := s.readSize(l)
	if l.read(ctx, s.tx, s.cache, s.now, limit) == nil {
		s.jobs = slices.Grow(s.jobs, len(l.buffered))
		return nil
	}
	s.tx.Cache().Invalidate() // the position of l would move past what is skipped
	skipped, err := l.salvage(ctx, s.tx, s.now, limit)
	s.damaged = cmp.Or(s.damaged, skipped)
	return err
}

// NextRunAt returns the earliest run_at among the queued jobs that fit; zero if there is none.
func NextRunAt(ctx context.Context, tx *ledger.Tx, want Want) (earliest time.Time, err error) {
	cache, err := loadClaimCache(ctx, tx)
	if err != nil {
		return earliest, err
	}
	lanes, damaged, err := fittingLanes(ctx, tx, cache, want)
	if err == nil && len(lanes) == 0 {
		err = damaged
	}
	if err != nil || len(lanes) == 0 {
		return earliest, err
	}
	first := slices.MinFunc(lanes, func(a, b *laneCursor) int { return cmp.Compare(a.runAt, b.runAt) })
	return event.FromMicros(first.runAt), nil
}
