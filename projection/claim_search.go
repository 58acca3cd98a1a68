package projection

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
)

// Want says which jobs a worker may take.
type Want struct {
	Queues       []string
	Version      string
	Capabilities []string
	Except       []ledger.JobID // jobs to step over
}

// Next returns up to limit queued jobs that fit and whose run_at has come, in claiming order: priority (higher
// first), run_at, id. It looks at the head of each lane and reads jobs only where one is next, so its cost does not
// grow with jobs that do not fit, are scheduled for later, or have ended. A job that is damaged is stepped over; if
// there is no other, the error is a DamagedJobError.
func Next(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) ([]Job, error) {
	s, err := Seek(ctx, tx, want, now, limit)
	if err != nil {
		return nil, err
	}
	return s.Jobs(ctx)
}

// Search is a Next under way.
type Search struct {
	tx      *ledger.Tx
	want    Want
	now     time.Time
	limit   int
	fit     []*liveLane
	lanes   []*liveLane // of these, the ones that may have a job still
	jobs    []Job
	damaged error
}

// Seek begins a Next. Between it and Jobs nothing may be written that queues a job, or changes one that is queued.
func Seek(ctx context.Context, tx *ledger.Tx, want Want, now time.Time, limit int) (*Search, error) {
	if len(want.Except) > 0 {
		tx.Forget() // which job is the first in its lane does not tell where to begin
		defer tx.Forget()
	}
	fit, damaged, err := fitting(ctx, tx, want)
	if err != nil {
		return nil, err
	}
	s := &Search{tx: tx, want: want, now: now, limit: limit, fit: fit, damaged: damaged}
	s.lanes = slices.DeleteFunc(slices.Clone(fit), func(l *liveLane) bool { return l.runAt > ledger.Micros(now) })
	if len(s.lanes) > 0 && limit > 0 {
		first := s.lanes[s.first()]
		err = first.ask(tx, now, s.most(first))
	}
	return s, err
}

// first is which of the lanes has the next job in claiming order.
func (s *Search) first() (first int) {
	for i := range s.lanes {
		if s.lanes[i].compare(s.lanes[first]) < 0 {
			first = i
		}
	}
	return first
}

// most is how many jobs of l are read at once: many lanes must not cost so many jobs each.
func (s *Search) most(l *liveLane) int {
	rivals := 0
	for _, other := range s.lanes {
		if other.priority == l.priority {
			rivals++
		}
	}
	left := s.limit - len(s.jobs)
	return min(left, 1+2*left/rivals)
}

// Jobs returns what Next does.
func (s *Search) Jobs(ctx context.Context) ([]Job, error) {
	for len(s.lanes) > 0 && len(s.jobs) < s.limit {
		first := s.first()
		l := s.lanes[first]
		switch {
		case len(l.ahead) > 0:
			if !slices.Contains(s.want.Except, l.ahead[0].ID) {
				s.jobs = append(s.jobs, l.ahead[0])
			}
			l.advance()
		case l.atEnd:
			s.lanes = slices.Delete(s.lanes, first, first+1)
			l.spend(s.now)
		default:
			most := s.most(l)
			if l.read(ctx, s.tx, s.now, most) == nil {
				s.jobs = slices.Grow(s.jobs, len(l.ahead))
				break
			}
			s.tx.Forget() // of what is left out, the lane would know nothing
			leftOut, err := l.readApart(ctx, s.tx, s.now, most)
			if err != nil {
				return nil, err
			}
			s.damaged = cmp.Or(s.damaged, leftOut)
		}
	}
	for _, l := range s.fit {
		l.rest()
	}
	s.guess()
	if len(s.jobs) == 0 {
		return nil, s.damaged
	}
	return s.jobs, nil
}

// guess notes where the next claim looks first, if this one took all that there was.
func (s *Search) guess() {
	known, ok := s.tx.Remembered().(*lanes)
	if !ok {
		return
	}
	known.guess = guess{}
	if len(s.lanes) > 0 || s.limit == 0 {
		return
	}
	for _, l := range s.fit {
		if l.spent && (known.guess.lane == nil || l.compare(known.guess.lane) < 0) {
			known.guess = guess{lane: l, most: s.limit, now: s.now, taken: time.Now()}
		}
	}
}

// NextRunAt returns the earliest run_at among the queued jobs that fit; zero if there is none.
func NextRunAt(ctx context.Context, tx *ledger.Tx, want Want) (earliest time.Time, err error) {
	lanes, damaged, err := fitting(ctx, tx, want)
	if err == nil && len(lanes) == 0 {
		err = damaged
	}
	if err != nil || len(lanes) == 0 {
		return earliest, err
	}
	first := slices.MinFunc(lanes, func(a, b *liveLane) int { return cmp.Compare(a.runAt, b.runAt) })
	return ledger.FromMicros(first.runAt), nil
}

// laneHeads is the hot query: one range of the index ready. It begins at the job that is known to be the first, because
// before that PostgreSQL has entries of jobs that are gone and passes over each. A bare LIMIT ? would be compiled anew for
// each value, since SQLite 3.47 plans with it.
var laneHeads = selectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) >= (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

// laneRest is laneHeads from behind a job that has been taken already.
var laneRest = selectQueued + ` WHERE j.lane = ? AND (j.run_at, j.id) > (?, ?) AND j.run_at <= ? ORDER BY j.run_at, j.id LIMIT 0 + ?`

// ask begins to read the next jobs of l, with their payloads.
func (l *liveLane) ask(tx *ledger.Tx, now time.Time, most int) (err error) {
	if known, ok := tx.Remembered().(*lanes); ok {
		if l.asked = known.guessed(tx, l, now); l.asked != nil {
			l.most = known.guess.most
			return nil
		}
	}
	l.most = most
	query := laneHeads
	if l.begun {
		query = laneRest
	}
	l.asked, err = tx.Ask(query, l.text, l.runAt, l.id, ledger.Micros(now), most)
	return err
}

// read gets the next jobs of l, which may have been asked for.
func (l *liveLane) read(ctx context.Context, tx *ledger.Tx, now time.Time, most int) error {
	if l.asked == nil {
		if err := l.ask(tx, now, most); err != nil {
			return err
		}
	}
	rows, err := l.asked.Rows(ctx)
	l.asked = nil
	if err == nil {
		l.ahead, err = scanJobs(ctx, tx, rows, true, min(l.had, l.most))
	}
	if err != nil {
		return err
	}
	l.ahead = slices.DeleteFunc(l.ahead, func(j Job) bool { return j.RunAt.After(now) }) // a guess may reach further
	l.atEnd, l.had = len(l.ahead) < l.most, len(l.ahead)
	if len(l.ahead) > 0 {
		l.runAt, l.id = ledger.Micros(l.ahead[0].RunAt), string(l.ahead[0].ID)
	}
	return nil
}

// advance leaves the first job of ahead behind.
func (l *liveLane) advance() {
	l.begun, l.ahead = true, l.ahead[1:]
	if len(l.ahead) > 0 {
		l.runAt, l.id = ledger.Micros(l.ahead[0].RunAt), string(l.ahead[0].ID)
	}
}
