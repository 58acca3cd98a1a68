package attempts

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// attemptColumns reads the claim c, the enqueued event q of its job and the event z that ended it, if any.
// The end is the first event of the job after the claim that is neither a heartbeat nor a takeover, and the
// event before it is the last sign of life. s says what the processes of a claim used that was lost: they
// ended after it. claims has the arguments.
var attemptColumns = event.SQL(`SELECT c.pos, c.job, q.ulid, c.attempt, q.data ->> 'queue', c.worker, c.at,
    z.pos, z.at, z.kind, CAST(z.data ->> 'exit_code' AS BIGINT), z.data ->> 'signal',
    coalesce(z.data ->> 'error_code', z.data ->> 'reason'),
    CAST(coalesce(s.data, z.data) ->> 'cpu_user' AS DOUBLE PRECISION),
    CAST(coalesce(s.data, z.data) ->> 'cpu_system' AS DOUBLE PRECISION),
    CAST(coalesce(s.data, z.data) ->> 'max_rss' AS BIGINT),
    CASE WHEN z.data ->> 'after_max_runtime' IS NULL THEN 0 ELSE 1 END,
    (SELECT CASE WHEN h.kind IN ({kinds:keepsClaim}) THEN h.at END FROM events h
     WHERE h.job = c.job AND h.seq < coalesce(z.seq, 9223372036854775807) AND h.pos <= ?
     ORDER BY h.seq DESC LIMIT 1)
FROM `)

var attemptEnd = event.SQL(` JOIN events q ON q.pos = c.job LEFT JOIN events z ON z.pos =
    (SELECT x.pos FROM events x
     WHERE x.job = c.job AND x.seq > c.seq AND x.kind NOT IN ({kinds:keepsClaim}) AND x.pos <= ?
     ORDER BY x.seq LIMIT 1)
LEFT JOIN events s ON s.pos = CASE WHEN z.kind IN ({cancelled}, {reclaimed}) THEN
    (SELECT min(x.pos) FROM events x WHERE x.job = c.job AND x.seq IS NULL AND x.kind = {stopped}
     AND x.attempt = c.attempt AND x.pos <= ?) END
WHERE c.kind = {claimed} AND c.pos > ? AND c.pos <= ?`)

// claims returns the beginning of a query for claims after a pos, up to another, and its arguments. from
// leads to the claims, and has fromArgs. Nothing is read of events after the pos known.
func claims(from string, fromArgs []any, known, after, until int64) (query string, args []any) {
	args = append(append([]any{known}, fromArgs...), known, known, after, until)
	return attemptColumns + from + attemptEnd, args
}

// known returns the pos after which nothing is known.
func (f Filter) known() int64 {
	if f.At == (projection.Moment{}) {
		return math.MaxInt64
	}
	return f.At.Pos
}

// byWorker reads the index on the claims of a worker. The at of the bounds limits the index, their pos is
// exact.
const byWorker = ` AND c.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)
    AND c.at >= coalesce((SELECT at FROM events WHERE pos = ?), 0)
    AND c.at <= (SELECT at FROM events WHERE pos = ?)`

// ofWorker is byWorker where the jobs lead to the claims: the + keeps SQLite from the index.
const ofWorker = ` AND +c.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`

// refusedJobs are the jobs with a refused write after a pos. Only their claims overlap, and only with claims
// before that write. It reads the index rare_events.
var refusedJobs = event.SQL(`(SELECT DISTINCT job FROM events WHERE kind = {refused} AND kind > {rareAfter}
    AND pos > ? AND pos <= ?) r CROSS JOIN events c ON c.job = r.job`)

var andRefused = event.SQL(` AND EXISTS (SELECT 1 FROM events r
    WHERE r.job = c.job AND r.seq IS NULL AND r.kind = {refused} AND r.pos <= ?)`)

// heldAtFrom selects the claims that began in a range of pos, up to From at most, and had not ended at From.
// If no index leads to them, the rows of the jobs do: a row shows more cheaply than the events that its
// job had ended.
func (f Filter) heldAtFrom(after, until int64) (query string, args []any) {
	from, args, indexed := f.index(after)
	if indexed {
		from += ` LEFT JOIN jobs j ON j.n = c.job`
	} else {
		from = `(SELECT n, finished_at FROM jobs WHERE n <= ?) j CROSS JOIN events c ON c.job = j.n`
		args = append(args, until)
	}
	query, args = claims(from, args, f.known(), after, until)
	query += ` AND (j.finished_at IS NULL OR j.finished_at >= ?) AND (z.pos IS NULL OR z.pos > ?)`
	terms, more := f.terms(byWorker, after, until)
	return query + terms, append(append(args, f.From.FinishedBefore(), f.From.Pos), more...)
}

// heldBy selects the claims of these jobs that began up to From and had not ended at From.
func (f Filter) heldBy(jobs []any) (query string, args []any) {
	query, args = claims(`events c`, nil, f.known(), f.After, f.From.Pos)
	query += ` AND (z.pos IS NULL OR z.pos > ?) AND c.seq > 0 AND c.job IN (` +
		table.Placeholders(len(jobs)) + `)`
	terms, more := f.terms(ofWorker)
	return query + terms, append(append(append(args, f.From.Pos), jobs...), more...)
}

// begunAfterFrom selects the claims that began in a range of pos after From.
func (f Filter) begunAfterFrom(after, until int64) (query string, args []any) {
	from, args, _ := f.index(after)
	query, args = claims(from, args, f.known(), after, until)
	terms, more := f.terms(byWorker, after, until)
	return query + terms, append(args, more...)
}

// index returns the FROM clause that leads to the claims after a pos, its arguments, and whether it uses an
// index of what f selects.
func (f Filter) index(after int64) (from string, args []any, indexed bool) {
	switch {
	case f.Job != 0:
		return `events c`, nil, true
	case f.Overlap:
		return refusedJobs, []any{after, f.known()}, true
	case f.Worker != "":
		return `events c INDEXED BY claims`, nil, true
	case len(f.Outcomes) == 1 && f.Outcomes[0] == 0 && f.At == (projection.Moment{}): // live claims only
		from = `(SELECT n FROM jobs WHERE lease_expires_at > 0) o CROSS JOIN events c ON c.job = o.n`
		return from, nil, true
	}
	return `events c`, nil, false
}

// terms returns the conditions of f on claims. That on the worker is given, with its arguments after the
// name.
func (f Filter) terms(worker string, bounds ...any) (query string, args []any) {
	add := func(term string, values ...any) {
		query, args = query+term, append(args, values...)
	}
	if f.Job != 0 {
		add(` AND c.job = ? AND c.seq > 0`, f.Job)
	}
	if f.Worker != "" {
		if f.Overlap {
			worker, bounds = ofWorker, nil
		}
		add(worker, append([]any{f.Worker, f.Worker}, bounds...)...)
	}
	if f.Queue != "" {
		add(` AND q.data ->> 'queue' = ?`, f.Queue)
	}
	if len(f.Outcomes) > 0 {
		add(` AND coalesce(z.kind, 0) IN (` + table.Placeholders(len(f.Outcomes)) + `)`)
		for _, k := range f.Outcomes {
			args = append(args, int64(k))
		}
	}
	if f.Code != nil {
		add(` AND coalesce(z.data ->> 'error_code', z.data ->> 'reason', '') = ?`, *f.Code)
	}
	if f.Overlap {
		add(andRefused, f.known())
	}
	return query, args
}

func scanAttempts(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Attempt,
	err error) {
	rows, err := tx.Query(ctx, query, args...)
	var a Attempt
	var worker, claimed int64
	var end, ended, kind, beat sql.NullInt64
	var signal, why sql.NullString
	var user, system sql.NullFloat64
	var rss sql.NullInt64
	var late int64
	into := []any{&a.Pos, &a.N, &a.Job, &a.Attempt, &a.Queue, &worker, &claimed, &end, &ended, &kind,
		&a.ExitCode, &signal, &why, &user, &system, &rss, &late, &beat}
	err = table.Each(rows, err, into, func() (err error) {
		if a.Worker, err = tx.WorkerOf(ctx, worker); err != nil {
			return fmt.Errorf("event %d: %w", a.Pos, err)
		}
		a.ClaimedAt, a.LastHeartbeat = event.FromMicros(claimed), event.FromMicros(beat.Int64)
		a.EndPos, a.EndedAt = end.Int64, event.FromMicros(ended.Int64)
		a.Outcome, a.Signal, a.Code = event.Kind(kind.Int64), signal.String, why.String
		a.AfterMaxRuntime = late != 0
		a.Cost = event.Cost{CPUUser: seconds(user.Float64), CPUSystem: seconds(system.Float64), MaxRSS: rss.Int64}
		found = append(found, a)
		return nil
	})
	return found, err
}

// seconds is a duration as an event has it, exact to the microsecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s*1e6)) * time.Microsecond }
