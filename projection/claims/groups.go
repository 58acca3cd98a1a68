package claims

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/ends"
	"jobledger/projection/group"
)

// groupLanes returns the lanes with groups whose jobs the search may take, now or later. They are not kept in
// the cache: the end of any claim may let another job of a group start.
func (s *Search) groupLanes(ctx context.Context) (fit []*laneCursor, err error) {
	if changes, ok := s.tx.EndHook().(*group.Changes); ok {
		if err := changes.Apply(ctx, s.tx); err != nil {
			return nil, err
		}
	}
	now := event.Micros(s.tx.Now())
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(s.want.Queues))) {
		if !s.cache.grouped[queue] {
			continue
		}
		lanes, err := group.Lanes(ctx, s.tx, queue)
		if err != nil {
			return nil, err
		}
		for _, found := range lanes {
			if found.Eligible > now { // or the clock ran back, and the last claims were later
				if found.Eligible, err = s.eligible(ctx, found); err != nil {
					return nil, err
				}
			}
			l, err := newLaneCursor(group.Plain(found.Base), found.Eligible, "")
			if err != nil {
				s.damaged = &DamagedJobError{Err: err}
				continue
			}
			if l.lane, l.grouped = found.Base, true; l.fits(s.want) {
				fit = append(fit, l)
			}
		}
	}
	return fit, nil
}

// eligible returns when the next job of a lane may start, where its groups were served after now by a clock
// that has run back since.
func (s *Search) eligible(ctx context.Context, l group.Lane) (int64, error) {
	raised, err := s.raisedNow(ctx)
	if err != nil || l.Eligible > raised {
		return l.Eligible, err
	}
	return group.FirstRunAt(ctx, s.tx, l.Base, raised)
}

// raisedNow returns now, raised to the at of the last event.
func (s *Search) raisedNow(ctx context.Context) (int64, error) {
	tail, err := s.tx.Tail(ctx)
	if err != nil || tail == 0 {
		return event.Micros(s.tx.At()), err
	}
	at, _, err := projection.TimeOfEvent(ctx, s.tx, tail)
	return max(at, event.Micros(s.tx.Now())), err
}

// maxPrefetched is how many groups are read at once.
const maxPrefetched = 64

// fillGroups buffers the next jobs of a lane with groups: one of each group that may start a job, those that
// have waited for longest first, then a second one of each, and so on. It reads all that the search may
// take.
func (s *Search) fillGroups(ctx context.Context, l *laneCursor) error {
	left := s.limit - len(s.jobs)
	l.exhausted = true
	raised := event.Micros(s.tx.At())
	for most := left; ; most *= 8 {
		candidates, err := group.Eligible(ctx, s.tx, l.lane, raised, most)
		if err != nil || len(candidates) == 0 {
			return err
		}
		if err := s.fillFrom(ctx, l, candidates, left); err != nil {
			return err
		}
		// If the clock ran back, the first jobs of all candidates may be due between now and then.
		if len(l.buffered) > 0 || len(candidates) < most {
			return nil
		}
	}
}

// fillFrom buffers up to left jobs of the candidates.
func (s *Search) fillFrom(ctx context.Context, l *laneCursor, candidates []group.Candidate, left int) error {
	each := (left + len(candidates) - 1) / len(candidates)
	jobs := make([][]projection.Job, 0, len(candidates))
	for chunk := range slices.Chunk(candidates, maxPrefetched) {
		found, err := s.readGroups(ctx, l.lane, chunk, each)
		if err != nil {
			return err
		}
		jobs = append(jobs, found...)
	}
	for round := range each {
		for i, c := range candidates {
			if round >= len(jobs[i]) {
				continue
			}
			key := event.Micros(s.now) // the group has been served in this search
			if round == 0 {
				key = c.Eligible
			}
			l.buffered, l.keys = append(l.buffered, jobs[i][round]), append(l.keys, key)
		}
	}
	l.positionAtBuffered()
	return nil
}

// readGroups returns up to each jobs of every group, without those that cannot be read.
func (s *Search) readGroups(ctx context.Context, base string, groups []group.Candidate, each int) (
	jobs [][]projection.Job, err error) {
	lanes := make([]*laneCursor, len(groups))
	rooms := make([]int, len(groups))
	for i, c := range groups {
		room, err := s.groupRoom(ctx, group.QueueOf(base), c.Group)
		if err != nil {
			return nil, err
		}
		rooms[i] = min(room, each)
	}
	for i, c := range groups {
		lanes[i] = &laneCursor{lane: base + "\t" + c.Group}
		if rooms[i] == 0 {
			continue
		}
		if err := lanes[i].prefetch(s.tx, s.cache, s.now, rooms[i]); err != nil {
			return nil, err
		}
	}
	for i, l := range lanes {
		if rooms[i] > 0 && l.read(ctx, s.tx, s.cache, s.now, rooms[i]) != nil {
			skipped, err := l.salvage(ctx, s.tx, s.now, rooms[i])
			if err != nil {
				return nil, err
			}
			if s.damaged == nil {
				s.damaged = skipped
			}
		}
		jobs = append(jobs, l.buffered)
	}
	return jobs, nil
}

// groupRoom returns how many more jobs of a group may be taken, at most.
func (s *Search) groupRoom(ctx context.Context, queue, name string) (int, error) {
	gate, err := s.cache.gate(ctx, s.tx, queue)
	if err != nil || gate.GroupBound(name) == 0 && gate.GroupRate(name).N == 0 {
		return s.limit, err
	}
	key := [2]string{queue, name}
	room, known := s.groupRooms[key]
	if known {
		return room, nil
	}
	room, err = gate.GroupRoom(ctx, s.tx, name, s.limit)
	if err == nil && room > 0 && gate.GroupBound(name) > 0 {
		var open int64
		if _, open, err = ends.Count(ctx, s.tx, queue, name, s.now); err == nil && open > 0 {
			room, err = gate.GroupRoom(ctx, s.tx, name, s.limit+int(open))
			room = min(s.limit, max(0, room-int(open)))
		}
	}
	if err == nil {
		room, err = gate.GroupStartRoom(ctx, s.tx, name, s.at, room)
	}
	if s.groupRooms == nil {
		s.groupRooms = make(map[[2]string]int)
	}
	s.groupRooms[key] = room
	return room, err
}

// groupHasRoom reports whether the first buffered job of l may be taken, and counts it: another lane of the
// group may have filled it in this search.
func (s *Search) groupHasRoom(l *laneCursor) bool {
	key := [2]string{l.queue, l.buffered[0].Group}
	room, limited := s.groupRooms[key]
	if !l.grouped || !limited {
		return true
	}
	s.groupRooms[key] = max(0, room-1)
	return room > 0
}

// noteGroup notes that the rows of a job's group must be updated, if its transition affects them.
func noteGroup(tx *ledger.Tx, before, after projection.Job) {
	changes := group.Of(tx, gateOf)
	from, to := projection.LaneOf(before), projection.LaneOf(after)
	if from != to {
		if base, name, ok := group.Split(from); ok {
			served := group.Served{}
			if after.State.Held() {
				served = group.Served{Pos: tx.Next(), At: event.Micros(tx.At())}
			}
			changes.Lane(base, name, served)
		}
	}
	if base, name, ok := group.Split(to); ok {
		changes.Lane(base, name, group.Served{})
	}
	if before.State.Held() != after.State.Held() {
		changes.Live(after.Queue, after.Group)
	}
}
