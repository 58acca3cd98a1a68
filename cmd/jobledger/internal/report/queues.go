package report

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// QueueDepth is how many jobs of a queue had not ended at the end of a step.
type QueueDepth struct {
	Minute time.Time // the beginning of the step
	Queue  string
	Queued int64
	Held   int64 // claimed or running
}

// Fields implements [Row].
func (d QueueDepth) Fields() []Field {
	return []Field{{"minute", d.Minute}, {"queue", d.Queue}, {"queued", d.Queued}, {"held", d.Held}}
}

// Depth returns the depth of each queue at the end of each step of s, see [query.Depth].
func Depth(ctx context.Context, tx *ledger.Tx, s Window) (rows []QueueDepth, err error) {
	span, err := s.span(ctx, tx)
	if err != nil {
		return nil, err
	}
	depth, err := query.Depth{Span: span, Step: s.Every}.Read(ctx, tx)
	for _, r := range depth {
		rows = append(rows, QueueDepth{r.At, r.Queue, r.Queued(), r.Held})
	}
	return rows, err
}

// QueueWait is how long the jobs of a queue waited for a worker, from the moment at which they were ready.
type QueueWait query.Wait

// Fields implements [Row].
func (w QueueWait) Fields() []Field {
	return []Field{{"queue", w.Queue}, {"claims", w.Claims}, {"p50", w.P50}, {"p99", w.P99}, {"max", w.Max}}
}

// Waits returns how long the jobs claimed within s had been ready, by queue, see [query.Waits].
func Waits(ctx context.Context, tx *ledger.Tx, s Window) (rows []QueueWait, err error) {
	span, err := s.span(ctx, tx)
	if err != nil {
		return nil, err
	}
	waits, err := query.Waits{Span: span}.Read(ctx, tx)
	for _, w := range waits {
		rows = append(rows, QueueWait(w))
	}
	return rows, err
}

// LateJob is a job that had not ended some time after it was enqueued.
type LateJob struct {
	Job      event.JobID
	Queue    string
	Enqueued time.Time
	Then     event.State // that time after it was enqueued
	Now      event.State
}

// Fields implements [Row].
func (j LateJob) Fields() []Field {
	return []Field{{"job", string(j.Job)}, {"queue", j.Queue}, {"enqueued", j.Enqueued}, {"state", j.Then},
		{"state_now", j.Now}}
}

var stateLater = event.SQL(`SELECT q.ulid, q.data ->> 'queue', q.at, j.state,
    (SELECT x.to_state FROM events x WHERE x.job = q.pos AND x.seq > 0 AND x.at <= q.at + ?
     ORDER BY x.seq DESC LIMIT 1)
FROM events q LEFT JOIN jobs j ON j.n = q.pos
WHERE q.kind = {enqueued} AND q.pos > ? AND q.pos <= ? AND q.at <= ?`)

// Backlog returns the jobs enqueued within s that had not ended s.Later after that, by id. A job that is not
// that old yet is not among them.
func Backlog(ctx context.Context, tx *ledger.Tx, s Window) (late []LateJob, err error) {
	later := cmp.Or(s.Later, time.Hour)
	s.Worker = ""
	terms, args := s.among()
	args = append([]any{later.Microseconds(), s.After, s.Until, event.Micros(s.Now.Add(-later))}, args...)
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var j LateJob
		var at int64
		var now sql.NullInt64
		err := r.Scan(&j.Job, &j.Queue, &at, &now, &j.Then)
		j.Enqueued, j.Now = event.FromMicros(at), event.State(now.Int64)
		if err == nil && !j.Then.Final() {
			late = append(late, j)
		}
		return err
	}, stateLater+terms, args...)
	slices.SortFunc(late, func(a, b LateJob) int { return strings.Compare(string(a.Job), string(b.Job)) })
	return late, err
}
