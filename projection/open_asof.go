package projection

import (
	"context"
	"iter"
	"math"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// openThen reads every row of the jobs up to a moment.
const openThen = `SELECT n FROM jobs WHERE n <= ? AND (finished_at IS NULL OR finished_at >= ?)`

// These statements find the same jobs from what is open now and what has ended since. A job that has ended
// keeps its rows in deps, so its state decides. The + keeps SQLite from the index on job.
var (
	queuedOf  = `SELECT n FROM jobs WHERE lane > '' AND n <= ?`
	heldOf    = `SELECT n FROM jobs WHERE lease_expires_at > 0 AND n <= ?`
	blockedOf = event.SQL(`SELECT n FROM jobs WHERE state = {state:blocked}
    AND n IN (SELECT child FROM deps WHERE child <= ?)`)
	endedSince = event.SQL(`SELECT job FROM events 
    WHERE pos > ? AND to_state BETWEEN {state:succeeded} AND {state:cancelled} AND +job <= ?`)
)

// eventsPerJob is about how many events a job has: reading these costs as much as reading its row.
const eventsPerJob = 4

// OpenAsOf returns the numbers of the jobs that had not ended at m. If no keyframe is near, those that had
// ended are among them if their rows do not show it: they were retried since, or have ended again. It costs
// the events since the keyframe before m. If that is far, it costs what has happened since m, or the jobs
// that existed at m, if these are fewer.
func OpenAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (open []int64, err error) {
	f, err := keyframe.Near(ctx, tx, m.Pos)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return f.Open(), nil
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	add := func(query string, args ...any) {
		if err == nil {
			var found []int64
			found, err = table.Numbers(ctx, tx, query, args...)
			open = append(open, found...)
		}
	}
	if tail-m.Pos > m.Pos/eventsPerJob {
		add(openThen, m.Pos, m.next)
	} else {
		since := tail
		if m.next != math.MaxInt64 {
			since, err = tx.PosAt(ctx, event.FromMicros(m.next-1))
		}
		add(queuedOf, m.Pos)
		add(heldOf, m.Pos)
		add(blockedOf, m.Pos)
		add(endedSince, since, m.Pos)
	}
	slices.Sort(open)
	return slices.Compact(open), err
}

// OpenJobsAsOf returns the jobs that OpenAsOf finds, as they were at m: all that were queued, blocked or held
// then, and some that had ended. Their states say which they are.
func OpenJobsAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (map[int64]Job, error) {
	open, err := OpenAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	return JobsAsOf(ctx, tx, open, m)
}

// OpenEvents yields the transitions up to m of the jobs that had not ended at m, job by job. A walk along the
// events after m that adds them to its QueuesOf and its Claims first goes on as if it had begun at the first
// event. Jobs that had ended and were retried after m may be among them. The rows of jobs say which they are.
func OpenEvents(ctx context.Context, tx *ledger.Tx, m Moment) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		open, err := OpenAsOf(ctx, tx, m)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for e, err := range eventsOfJobs(ctx, tx, open, m) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
