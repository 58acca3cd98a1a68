package report

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// Failure is how often attempts ended with an error code, or were taken from a worker for a reason.
type Failure struct {
	Code        string
	Count       int64
	Jobs        int64
	First, Last time.Time
}

// Fields implements [Row].
func (f Failure) Fields() []Field {
	return []Field{{"code", f.Code}, {"count", f.Count}, {"jobs", f.Jobs}, {"first", f.First}, {"last", f.Last}}
}

var failuresByCode = event.SQL(`SELECT coalesce(e.data ->> 'error_code', e.data ->> 'reason', '') AS code,
    count(*), count(DISTINCT e.job), min(e.at), max(e.at)
FROM events e CROSS JOIN events q
WHERE q.pos = e.job AND e.kind IN ({failed}, {reclaimed}) AND e.pos > ? AND e.pos <= ?`)

// Failures returns the error codes that occurred within s, the most frequent first. A job that was taken from
// its worker has the reason of that as its code.
func Failures(ctx context.Context, tx *ledger.Tx, s Window) (all []Failure, err error) {
	terms, args := s.among()
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var f Failure
		var first, last int64
		err := r.Scan(&f.Code, &f.Count, &f.Jobs, &first, &last)
		f.First, f.Last = event.FromMicros(first), event.FromMicros(last)
		all = append(all, f)
		return err
	}, failuresByCode+terms+` GROUP BY 1`, append([]any{s.After, s.Until}, args...)...)
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), strings.Compare(a.Code, b.Code))
	})
	return all, err
}

// LongAttempt is a claim that lasted long.
type LongAttempt struct {
	Job     event.JobID
	Attempt int
	Queue   string
	Worker  event.Worker
	Claimed time.Time
	Lasted  time.Duration
	Outcome event.Kind
}

// Fields implements [Row].
func (a LongAttempt) Fields() []Field {
	return []Field{{"job", string(a.Job)}, {"attempt", int64(a.Attempt)}, {"queue", a.Queue},
		{"worker", a.Worker.Name}, {"claimed_at", a.Claimed}, {"lasted", a.Lasted}, {"outcome", a.Outcome.String()}}
}

// Longest returns the attempts that ended within s and lasted longest, at most s.Limit.
func Longest(ctx context.Context, tx *ledger.Tx, s Window) (all []LongAttempt, err error) {
	span, err := s.span(ctx, tx)
	if err != nil {
		return nil, err
	}
	span.Worker = s.Worker
	found, err := query.Longest{Span: span, Limit: cmp.Or(s.Limit, 10)}.Read(ctx, tx)
	for _, a := range found {
		all = append(all, LongAttempt{a.Job, a.Attempt, a.Queue, a.Worker, a.ClaimedAt, a.Lasted(), a.Outcome})
	}
	return all, err
}
