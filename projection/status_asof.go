package projection

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// StatusThen is how things stood in one queue, and how many jobs it has now.
type StatusThen struct {
	QueueStatus
	Now map[ledger.State]int64
}

// standing is every row of jobs in one text: its queue and state as one number, a code; below zero if it was not there
// then; and with the job's own number above it if it had not ended then. An index for the numbers of finished jobs would
// cost every transition. One text instead of a row for each takes half the time, and counting in SQL, which would sort
// them, three times as long.
const standing = `SELECT group_concat(CASE WHEN finished_at < ?2 THEN queue * 64 + state WHEN n > ?1 THEN -queue * 64 - state
    ELSE n * 67108864 + queue * 64 + state END) FROM jobs WHERE n > ?3 AND n <= ?4`

// codeBits are the bits of a code: 67108864 is 1 << codeBits.
const codeBits = 26

// StatusAsOf returns what Status would have returned at m, and the numbers of now. It reads every row of jobs once,
// and the events of the jobs that were open at m.
func StatusAsOf(ctx context.Context, tx *ledger.Tx, m Moment) ([]StatusThen, error) {
	then, now := make(map[string]*QueueStatus), make(map[string]map[ledger.State]int64)
	open, err := countStanding(ctx, tx, m, then, now)
	if err != nil {
		return nil, err
	}
	jobs, err := jobsAsOf(ctx, tx, open, m)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		statusOf(then, j.Queue).count(j, m.At)
	}
	hourBefore, err := tx.PosAt(ctx, m.At.Add(-time.Hour))
	if err != nil {
		return nil, err
	}
	if err := countActivity(ctx, tx, then, hourBefore, m.Pos); err != nil {
		return nil, err
	}
	known, err := QueuesAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	var all []StatusThen
	for _, s := range sortedStatus(then, known) {
		all = append(all, StatusThen{QueueStatus: s, Now: now[s.Name]})
	}
	return all, nil
}

// longLedger is how many events a ledger has of which two halves are read at the same time.
const longLedger = 20_000

// countStanding counts the jobs of now, and of then those that had ended. It returns the numbers of the others. Of a long
// ledger the second half is read beside the first; what is now may then be a moment later there.
func countStanding(ctx context.Context, tx *ledger.Tx, m Moment, then map[string]*QueueStatus, now map[string]map[ledger.State]int64) (open []int64, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	whole, half := &tally{}, &tally{}
	until, wait := int64(math.MaxInt64), func() error { return nil }
	if tail > longLedger {
		until = tail / 2
		wait = tx.ReadConcurrently(ctx, func(tx *ledger.Tx) error { return half.read(ctx, tx, m, until, math.MaxInt64) })
	}
	err = whole.read(ctx, tx, m, math.MinInt64, until)
	if waitErr := wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return nil, err
	}
	whole.add(half)
	for c, count := range whole.now.all() {
		queue, err := tx.NameOf(ctx, c/64)
		if err != nil {
			return nil, err
		}
		state := ledger.State(c % 64)
		if now[queue] == nil {
			now[queue] = make(map[ledger.State]int64)
		}
		now[queue][state] = count
		if ended := whole.then.count(c); ended > 0 {
			statusOf(then, queue).Jobs[state] = ended
		}
	}
	slices.Sort(whole.open)
	return whole.open, nil
}

// tally counts codes: of the jobs of now, and of those that had ended then. open are the numbers of the others of then.
type tally struct {
	now, then codeTally
	open      []int64
}

// read counts the jobs behind after, up to until.
func (t *tally) read(ctx context.Context, tx *ledger.Tx, m Moment, after, until int64) error {
	var text sql.NullString
	if err := table.ScanOne(ctx, tx, standing, []any{&text}, m.Pos, m.next, after, until); err != nil {
		return err
	}
	for rest := text.String; rest != ""; rest = strings.TrimPrefix(rest, ",") {
		var c int64
		var ok bool
		if c, rest, ok = cutNumber(rest); !ok {
			return fmt.Errorf("%w: jobs: %.40q", ledger.ErrDamaged, rest)
		}
		switch {
		case c < 0:
			c = -c
		case c < 1<<codeBits:
			t.then.add(c, 1)
		default:
			t.open = append(t.open, c>>codeBits)
			c &= 1<<codeBits - 1
		}
		t.now.add(c, 1)
	}
	return nil
}

// add adds what other has counted.
func (t *tally) add(other *tally) {
	for c, n := range other.now.all() {
		t.now.add(c, n)
	}
	for c, n := range other.then.all() {
		t.then.add(c, n)
	}
	t.open = append(t.open, other.open...)
}

// cutNumber takes an integer off the beginning of text. There are as many as jobs, so it is made for them.
func cutNumber(text string) (n int64, rest string, ok bool) {
	i, sign := 0, int64(1)
	if strings.HasPrefix(text, "-") {
		i, sign = 1, -1
	}
	begin := i
	for i < len(text) && text[i] >= '0' && text[i] <= '9' && i-begin < 18 {
		n = n*10 + int64(text[i]-'0')
		i++
	}
	return sign * n, text[i:], i > begin
}

// codeTally counts how often each code occurs. Nearly all are small numbers.
type codeTally struct {
	small [4096]int64
	large map[int64]int64
}

func (t *codeTally) add(c, n int64) {
	if c < int64(len(t.small)) {
		t.small[c] += n
		return
	}
	if t.large == nil {
		t.large = make(map[int64]int64)
	}
	t.large[c] += n
}

func (t *codeTally) count(c int64) int64 {
	if c < int64(len(t.small)) {
		return t.small[c]
	}
	return t.large[c]
}

// all yields the codes that occur.
func (t *codeTally) all() iter.Seq2[int64, int64] {
	return func(yield func(code, count int64) bool) {
		for c, n := range t.small {
			if n > 0 && !yield(int64(c), n) {
				return
			}
		}
		for c, n := range t.large {
			if !yield(c, n) {
				return
			}
		}
	}
}

// count adds a job that is known in full.
func (s *QueueStatus) count(j Job, now time.Time) {
	s.Jobs[j.State]++
	switch {
	case j.State == ledger.Queued && j.RunAt.After(now):
		s.Scheduled++
		s.NextRunAt = earliest(s.NextRunAt, j.RunAt)
	case j.State == ledger.Queued:
		s.Ready++
		s.OldestReady = earliest(s.OldestReady, j.RunAt)
	case j.State.Held() && !j.LeaseUntil.After(now):
		s.Expired++
		s.OldestLease = earliest(s.OldestLease, j.LeaseUntil)
	}
	if j.State == ledger.Queued && j.Failures > 0 {
		s.Retrying++
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// QueuesAsOf returns what Queues would have returned at m. The events of queues are few and found by themselves.
func QueuesAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (found []Queue, err error) {
	if m.Pos == 0 {
		return nil, nil
	}
	byName := make(map[string]Queue)
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.KindQueuePaused, ledger.KindQueueResumed}, Until: m.Pos}) {
		if err != nil {
			return nil, err
		}
		name := queueOf(e)
		q, err := EvolveQueue(byName[name], e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Pos, err)
		}
		byName[name] = q
	}
	for _, q := range byName {
		found = append(found, q)
	}
	slices.SortFunc(found, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// queueOf is the queue that e pauses or resumes.
func queueOf(e ledger.Event) string {
	switch b := e.Body.(type) {
	case *ledger.QueuePaused:
		return b.Queue
	case *ledger.QueueResumed:
		return b.Queue
	}
	return ""
}
