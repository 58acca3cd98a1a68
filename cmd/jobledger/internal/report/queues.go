package report

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
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

const depthMoves = `SELECT (e.at - ?) / ? * ? + ?, q.data ->> 'queue',
    sum(CASE WHEN e.to_state = 1 THEN 1 ELSE 0 END) - sum(CASE WHEN e.from_state = 1 THEN 1 ELSE 0 END),
    sum(CASE WHEN e.to_state IN (2, 3) THEN 1 ELSE 0 END) -
        sum(CASE WHEN e.from_state IN (2, 3) THEN 1 ELSE 0 END)
FROM events e CROSS JOIN events q
WHERE q.pos = e.job AND e.pos > ? AND e.pos <= ? AND e.seq IS NOT NULL AND e.kind <> 3`

// Depth returns the depth of each queue at the end of each step of s, from the first step in which anything
// happened to the last, the queues by name. If nothing happened, it returns the depth at the end of s of the
// queues that have jobs which have not ended. Where s says when the steps begin, all of them are
// there, and what happened before belongs to the first.
func Depth(ctx context.Context, tx *ledger.Tx, s Window) (depths []QueueDepth, err error) {
	step := int64(cmp.Or(s.Every, time.Minute) / time.Microsecond)
	first := int64(0) // where a step begins
	if !s.Steps.IsZero() {
		first = event.Micros(s.Steps)
	}
	now := make(map[string]QueueDepth)
	if s.After > 0 {
		from, err := projection.AtPos(ctx, tx, s.After)
		if err != nil {
			return nil, err
		}
		queues, err := status.QueuesAsOf(ctx, tx, from)
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			if s.Queue == "" || s.Queue == q.Name {
				now[q.Name] = QueueDepth{Queue: q.Name, Queued: q.Jobs[event.Queued],
					Held: q.Jobs[event.ClaimedState] + q.Jobs[event.Running]}
			}
		}
	}
	moves := make(map[int64][]QueueDepth) // by the time of the step
	s.Worker = ""
	terms, args := s.among()
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var at int64
		var d QueueDepth
		if err := r.Scan(&at, &d.Queue, &d.Queued, &d.Held); err != nil {
			return err
		}
		if _, isKnown := now[d.Queue]; !isKnown {
			now[d.Queue] = QueueDepth{Queue: d.Queue}
		}
		moves[at] = append(moves[at], d)
		return nil
	}, depthMoves+terms+` GROUP BY 1, 2`, append([]any{first, step, step, first, s.After, s.Until}, args...)...)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(now))
	if len(moves) == 0 && s.Steps.IsZero() {
		end := s.End
		if end.IsZero() {
			end = s.Now
		}
		at := event.FromMicros(event.Micros(end) / step * step)
		for _, name := range names {
			if d := now[name]; d.Queued+d.Held > 0 {
				d.Minute = at
				depths = append(depths, d)
			}
		}
		return depths, nil
	}
	steps := slices.Sorted(maps.Keys(moves))
	from, to := first, event.Micros(s.End)-1
	if s.Steps.IsZero() {
		from, to = steps[0], steps[len(steps)-1]
	} else if len(steps) > 0 {
		to = max(to, steps[len(steps)-1])
	}
	for at := from; at <= to; at += step {
		for _, d := range moves[at] {
			was := now[d.Queue]
			was.Queued, was.Held = was.Queued+d.Queued, was.Held+d.Held
			now[d.Queue] = was
		}
		for _, name := range names {
			d := now[name]
			d.Minute = event.FromMicros(at)
			depths = append(depths, d)
		}
	}
	return depths, nil
}

// QueueWait is how long the jobs of a queue waited for a worker, from the moment at which they were ready.
type QueueWait struct {
	Queue         string
	Claims        int64
	P50, P99, Max time.Duration
}

// Fields implements [Row].
func (w QueueWait) Fields() []Field {
	return []Field{{"queue", w.Queue}, {"claims", w.Claims}, {"p50", w.P50}, {"p99", w.P99}, {"max", w.Max}}
}

// waitedFor reads each claim with the event that queued the job. A time before that event made the job ready
// at once.
const waitedFor = `SELECT q.data ->> 'queue', e.at - p.at,
    e.at - CAST(coalesce(p.data ->> 'retry_at', p.data ->> 'run_at') AS BIGINT)
FROM events e CROSS JOIN events q CROSS JOIN events p
WHERE q.pos = e.job AND p.job = e.job AND p.seq = e.seq - 1 AND e.kind = 2 AND e.pos > ? AND e.pos <= ?`

// Waits returns how long the jobs claimed within s had been ready, by queue. A percentile is the wait of a
// claim: of 100 claims, p99 is the second longest.
func Waits(ctx context.Context, tx *ledger.Tx, s Window) (all []QueueWait, err error) {
	waits := make(map[string][]time.Duration)
	terms, args := s.among()
	err = each(ctx, tx, func(r *ledger.Rows) error {
		var queue string
		var queued int64
		var due sql.NullInt64
		if err := r.Scan(&queue, &queued, &due); err != nil {
			return err
		}
		wait := queued
		if due.Valid {
			wait = max(min(wait, due.Int64), 0)
		}
		waits[queue] = append(waits[queue], time.Duration(wait)*time.Microsecond)
		return nil
	}, waitedFor+terms, append([]any{s.After, s.Until}, args...)...)
	for _, queue := range slices.Sorted(maps.Keys(waits)) {
		sorted := waits[queue]
		slices.Sort(sorted)
		// the smallest that at least so many of 100 do not exceed
		of := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
		all = append(all, QueueWait{queue, int64(len(sorted)), of(50), of(99), sorted[len(sorted)-1]})
	}
	return all, err
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

const stateLater = `SELECT q.ulid, q.data ->> 'queue', q.at, j.state,
    (SELECT x.to_state FROM events x WHERE x.job = q.pos AND x.seq > 0 AND x.at <= q.at + ?
     ORDER BY x.seq DESC LIMIT 1)
FROM events q LEFT JOIN jobs j ON j.n = q.pos
WHERE q.kind = 1 AND q.pos > ? AND q.pos <= ? AND q.at <= ?`

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
