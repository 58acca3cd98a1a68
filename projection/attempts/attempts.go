package attempts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// Attempt is one claim, from its beginning to its end.
type Attempt struct {
	Pos           int64 // of the event claimed
	N             int64 // the job's number
	Job           event.JobID
	Attempt       int
	Queue         string
	Worker        event.Worker
	ClaimedAt     time.Time
	LastHeartbeat time.Time  // zero: none came
	EndedAt       time.Time  // zero: it has not ended
	EndPos        int64      // of the event that ended it; 0: it has not ended
	Outcome       event.Kind // its kind
	ExitCode      *int       // nil: none
	Signal        string
	Code          string // the error code, or the reason for which it was taken back, released or cancelled

	// Cost is what its processes used, even if they ended after the claim was taken back or cancelled.
	Cost event.Cost

	AfterMaxRuntime bool // it succeeded, and its work had gone on beyond its max runtime

	// Replaced is when the job got another payload after the claim had begun; zero: it did not. It is known only
	// if the claims are of one job.
	Replaced time.Time
}

// Lasted is how long a claim that has ended lasted.
func (a Attempt) Lasted() time.Duration { return a.EndedAt.Sub(a.ClaimedAt) }

// Measures are what attempts can be measured by.
var Measures = []string{"elapsed", "cpu", "max_rss"}

// Measured is the amount of a measure that an ended claim used; "" is elapsed. It is 0 where that is not
// known.
func (a Attempt) Measured(by string) int64 {
	switch by {
	case "cpu":
		return int64(a.Cost.CPU())
	case "max_rss":
		return a.Cost.MaxRSS
	}
	return int64(a.Lasted()) + 1
}

// Filter says which claims to list. The zero filter is none: To says up to when.
type Filter struct {
	From     projection.Moment // claims that had not ended at this moment; zero: from the beginning
	To       projection.Moment // claims that had begun at this moment
	At       projection.Moment // claims are as they were then: nothing later is known; zero: everything is
	Job      int64             // the job's number; 0: all
	Worker   string            // the name of a worker, or the boot of one process of it; "": all
	Queue    string
	Outcomes []event.Kind // how it ended; 0 among them: not yet. None: all
	Code     *string      // with exactly this Code; nil: all
	Overlap  bool         // only claims under which a job ran while another owner worked on it too
	After    int64        // claims whose Pos is greater: the next page
	Limit    int          // at most so many; 0: no limit
	Last     bool         // the last Limit of them, instead of the first; After must be 0
}

// attemptPage is how many claims one query returns.
const attemptPage = 512

// List returns the claims that f selects, in the order in which they began: those that were held at From,
// then those that began after it. A keyframe before From leads to the former; without, they are searched
// among the claims before From. With a worker it reads only the claims of that worker, and with Overlap only
// those of jobs with refused writes.
func List(ctx context.Context, tx *ledger.Tx, f Filter) ([]Attempt, error) {
	l := attemptList{tx: tx, f: f, overlaps: make(map[int64]map[int]bool)}
	if f.Last {
		return l.last(ctx)
	}
	done, err := l.addHeld(ctx)
	if err == nil && !done {
		err = l.addPages(ctx, f.heldAtFrom, min(f.From.Pos, f.To.Pos))
	}
	if err == nil {
		l.after = max(l.after, f.From.Pos)
		err = l.addPages(ctx, f.begunAfterFrom, f.To.Pos)
	}
	return l.found, err
}

// attemptList collects the claims that a filter selects, page by page.
type attemptList struct {
	tx       *ledger.Tx
	f        Filter
	after    int64 // the pos of the last claim that was read
	found    []Attempt
	overlaps map[int64]map[int]bool // by job, which of its attempts overlap
}

// addPages adds the claims that began after l.after, up to until, and that the query made by build finds.
func (l *attemptList) addPages(ctx context.Context, build func(after, until int64) (string, []any),
	until int64) error {
	l.after = max(l.after, l.f.After)
	for l.after < until && !l.full() {
		query, args := build(l.after, until)
		page, err := scanAttempts(ctx, l.tx, query+` ORDER BY c.pos LIMIT ?`, append(args, attemptPage)...)
		if err != nil {
			return err
		}
		for _, a := range page {
			l.after = a.Pos
			if err := l.add(ctx, a); err != nil {
				return err
			}
			if l.full() {
				break
			}
		}
		if len(page) < attemptPage {
			break
		}
	}
	return nil
}

// last returns the last claims, up to the limit, in the order in which they began.
func (l *attemptList) last(ctx context.Context) ([]Attempt, error) {
	from := min(l.f.From.Pos, l.f.To.Pos)
	err := l.addPagesBack(ctx, l.f.begunAfterFrom, from, l.f.To.Pos)
	done := false
	if err == nil {
		done, err = l.addHeld(ctx)
	}
	if err == nil && !done {
		err = l.addPagesBack(ctx, l.f.heldAtFrom, 0, from)
	}
	slices.Reverse(l.found)
	return l.found, err
}

// addPagesBack is addPages from the last claim to the first.
func (l *attemptList) addPagesBack(ctx context.Context, build func(after, until int64) (string, []any),
	after, until int64) error {
	for after < until && !l.full() {
		query, args := build(after, until)
		page, err := scanAttempts(ctx, l.tx, query+` ORDER BY c.pos DESC LIMIT ?`, append(args, attemptPage)...)
		if err != nil {
			return err
		}
		for _, a := range page {
			if until = a.Pos - 1; l.full() {
				break
			}
			if err := l.add(ctx, a); err != nil {
				return err
			}
		}
		if len(page) < attemptPage {
			break
		}
	}
	return nil
}

// addHeld adds the claims that were held at From, found by the jobs that were. done is false where no
// keyframe near From says which these are, and where another way is shorter.
func (l *attemptList) addHeld(ctx context.Context) (done bool, err error) {
	from := l.f.From.Pos
	if l.f.Job != 0 || from > l.f.To.Pos || from <= l.f.After || l.full() {
		return false, nil
	}
	frame, err := keyframe.Near(ctx, l.tx, from)
	if frame == nil || err != nil {
		return false, err
	}
	var held []Attempt
	for jobs := range table.Chunks(frame.Held()) {
		query, args := l.f.heldBy(jobs)
		found, err := scanAttempts(ctx, l.tx, query, args...)
		if err != nil {
			return false, err
		}
		held = append(held, found...)
	}
	slices.SortFunc(held, func(a, b Attempt) int { return cmp.Compare(a.Pos, b.Pos) })
	if l.f.Last {
		slices.Reverse(held)
	}
	for _, a := range held {
		if l.full() {
			break
		}
		if err := l.add(ctx, a); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (l *attemptList) full() bool { return l.f.Limit > 0 && len(l.found) == l.f.Limit }

// add adds a, unless the filter asks for overlapping attempts and a is none.
func (l *attemptList) add(ctx context.Context, a Attempt) (err error) {
	if l.f.Overlap {
		if l.overlaps[a.N] == nil {
			if l.overlaps[a.N], err = overlapping(ctx, l.tx, a.N, l.f.known()); err != nil {
				return err
			}
		}
		if !l.overlaps[a.N][a.Attempt] {
			return nil
		}
	}
	l.found = append(l.found, a)
	return nil
}

// overlapping returns the attempts of job n that ran at the same time as another one. A refused write shows
// that its owner was still at work: every claim that had begun since overlaps with it. Only events up to
// known count.
func overlapping(ctx context.Context, tx *ledger.Tx, n, known int64) (map[int]bool, error) {
	attempts := make(map[int]bool)
	latest := 0
	f := ledger.Filter{Job: n, Kinds: []event.Kind{event.KindClaimed, event.KindRefused}, Until: known}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		switch {
		case e.Kind() == event.KindClaimed:
			latest = e.Attempt
		case e.Attempt > 0:
			for a := e.Attempt; a <= latest && e.Attempt < latest; a++ {
				attempts[a] = true
			}
		}
	}
	return attempts, nil
}
