package claims

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/ends"
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
	lanes   []*laneCursor  // those of fitting that may still have a job
	rooms   map[string]int // for how many more jobs the limits of a queue have room
	at      int64          // by which the rates of queues are judged; 0: they are not

	groupRooms map[[2]string]int // the same, by queue and group
	ageing     map[string]int64  // in microseconds, of the queues that have it; nil: of none
	jobs       []projection.Job
	damaged    error
}

// Seek begins a search for up to limit queued jobs that fit and whose run_at has come. Until Jobs is called,
// nothing may be written that queues a job or changes a queued one.
func Seek(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) (_ *Search, err error) {
	s := &Search{tx: tx, want: want, now: now, limit: limit}
	if len(want.Except) > 0 {
		tx.Cache().Invalidate() // a search that skips jobs must not move the cached positions past them
		s.cache = storeEmptyClaimCache(tx).withoutLanes()
	} else if s.cache, err = loadClaimCache(ctx, tx); err != nil {
		return nil, err
	}
	s.fitting, s.damaged, err = fittingLanes(ctx, tx, s.cache, want)
	if err != nil {
		return nil, err
	}
	for _, queue := range want.Queues {
		if gate := s.cache.gates[queue]; gate != nil && gate.Ageing > 0 {
			if s.ageing == nil {
				s.ageing = make(map[string]int64)
			}
			s.ageing[queue] = gate.Ageing.Microseconds()
		}
	}
	due := func(l *laneCursor) bool { return l.runAt <= event.Micros(now) }
	for _, l := range s.fitting {
		if due(l) {
			s.lanes = append(s.lanes, l)
		}
	}
	if len(s.lanes) > 0 && limit > 0 {
		first := s.lanes[s.firstLane()]
		if s.Limited(first.queue) { // it may have no room; that is known after what is written before Jobs
			return s, nil
		}
		err = first.prefetch(tx, s.cache, now, s.readSize(first))
	}
	return s, err
}

// firstLane returns the index of the lane with the next job in claiming order.
func (s *Search) firstLane() (first int) {
	if s.ageing != nil {
		return s.firstAged()
	}
	for i := range s.lanes {
		if s.lanes[i].compare(s.lanes[first]) < 0 {
			first = i
		}
	}
	return first
}

// firstAged is firstLane if a queue has ageing: it takes the first lane of each queue by the queue's own
// order, and of these the first one by priority.
func (s *Search) firstAged() (first int) {
	firsts := make(map[string]int, len(s.want.Queues))
	for i, l := range s.lanes {
		f, known := firsts[l.queue]
		if !known || l.compareAged(s.lanes[f], s.ageing[l.queue]) < 0 {
			firsts[l.queue] = i
		}
	}
	first = -1
	for i, l := range s.lanes {
		if firsts[l.queue] == i && (first < 0 || l.compare(s.lanes[first]) < 0) {
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

// Jobs returns the jobs that the search finds, with their payloads, and those of groups among them. A damaged
// job is skipped; if no other job is left, the error is a DamagedJobError.
func (s *Search) Jobs(ctx context.Context) ([]projection.Job, error) {
	s.at = event.Micros(s.tx.At())
	groups, err := s.groupLanes(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range groups {
		if l.runAt <= event.Micros(s.now) {
			s.lanes = append(s.lanes, l)
		}
	}
	for len(s.lanes) > 0 && len(s.jobs) < s.limit {
		first := s.firstLane()
		l := s.lanes[first]
		room, err := s.room(ctx, l.queue)
		if err != nil {
			return nil, err
		}
		switch {
		case room == 0:
			s.lanes = slices.DeleteFunc(s.lanes, func(o *laneCursor) bool { return o.queue == l.queue })
		case len(l.buffered) > 0:
			if !slices.Contains(s.want.Except, l.buffered[0].ID) && s.groupHasRoom(l) {
				s.jobs = append(s.jobs, l.buffered[0])
				s.take(l.queue)
			}
			l.advance()
		case l.exhausted:
			s.lanes = slices.Delete(s.lanes, first, first+1)
			if !l.grouped {
				l.drain(s.now)
			}
		case l.grouped:
			if err := s.fillGroups(ctx, l); err != nil {
				return nil, err
			}
		default:
			if err := s.fill(ctx, l); err != nil {
				return nil, err
			}
		}
	}
	for _, l := range s.fitting {
		l.endSearch()
	}
	before := s.cache.speculation.limit
	s.cache.speculation = speculation{}
	switch {
	case s.limit == 0:
	case len(s.lanes) == 0:
		s.cache.speculate(s.fitting, s.limit, s.now)
	default:
		if l := s.lanes[s.firstLane()]; !l.grouped && !s.Limited(l.queue) {
			// To read a few jobs too many costs less than another round trip.
			s.cache.speculation = speculation{lane: l, busy: true, limit: max(s.limit, before*7/8), now: s.now,
				wall: time.Now()}
		}
	}
	if len(s.jobs) == 0 {
		return nil, s.damaged
	}
	return s.jobs, nil
}

// room returns how many more jobs of a queue may be taken, at most.
func (s *Search) room(ctx context.Context, queue string) (int, error) {
	gate := s.cache.gates[queue]
	if gate == nil {
		return s.limit, nil
	}
	room, known := s.rooms[queue]
	if known {
		return room, nil
	}
	room, err := gate.Room(ctx, s.tx, s.limit)
	if err == nil && room > 0 && gate.Running > 0 { // commands of cancelled jobs take slots until they end
		var open int64
		if open, _, err = ends.Count(ctx, s.tx, queue, "", s.now); err == nil && open > 0 {
			room, err = gate.Room(ctx, s.tx, s.limit+int(open))
			room = min(s.limit, max(0, room-int(open)))
		}
	}
	if err == nil && s.at != 0 {
		room, err = gate.StartRoom(ctx, s.tx, s.at, room)
	}
	if s.rooms == nil {
		s.rooms = make(map[string]int)
	}
	s.rooms[queue] = room
	return room, err
}

func (s *Search) take(queue string) {
	if s.rooms != nil {
		s.rooms[queue]--
	}
}

// Limited reports whether limits are in force for a queue of the search.
func (s *Search) Limited(queue string) bool {
	gate := s.cache.gates[queue]
	return gate != nil && gate.Active()
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

// NextRunAt returns the earliest run_at among the queued jobs that fit and that the limits of their queues
// permit to start; zero if there is none.
func NextRunAt(ctx context.Context, tx *ledger.Tx, want Want) (earliest time.Time, err error) {
	cache, err := loadClaimCache(ctx, tx)
	if err != nil {
		return earliest, err
	}
	lanes, damaged, err := fittingLanes(ctx, tx, cache, want)
	if err != nil {
		return earliest, err
	}
	s := Search{tx: tx, want: want, limit: 1, cache: cache}
	groups, err := s.groupLanes(ctx)
	if err != nil {
		return earliest, err
	}
	if lanes = append(lanes, groups...); len(lanes) == 0 {
		return earliest, damaged
	}
	starts := make(map[string]int64) // the earliest ones, by the rates of the queues
	for _, queue := range want.Queues {
		if starts[queue], err = s.nextStart(ctx, queue); err != nil {
			return earliest, err
		}
		room, err := s.room(ctx, queue)
		if err != nil {
			return earliest, err
		}
		if room == 0 {
			lanes = slices.DeleteFunc(lanes, func(l *laneCursor) bool { return l.queue == queue })
		}
	}
	if len(lanes) == 0 {
		return earliest, nil
	}
	start := func(l *laneCursor) int64 { return max(l.runAt, starts[l.queue]) }
	first := slices.MinFunc(lanes, func(a, b *laneCursor) int { return cmp.Compare(start(a), start(b)) })
	return event.FromMicros(start(first)), nil
}

// nextStart returns the time from which the rate of a queue lets the next job start; 0: it has come, be it by
// the last event only.
func (s *Search) nextStart(ctx context.Context, queue string) (int64, error) {
	gate := s.cache.gates[queue]
	if gate == nil || gate.Rate.N == 0 {
		return 0, nil
	}
	start, err := gate.NextStart(ctx, s.tx)
	if err != nil || start <= event.Micros(s.tx.Now()) {
		return 0, err
	}
	if raised, err := s.raisedNow(ctx); err != nil || start <= raised {
		return 0, err
	}
	return start, nil
}
