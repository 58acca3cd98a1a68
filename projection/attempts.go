package projection

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
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
	Outcome       event.Kind // of the event that ended it; 0: it has not ended
	ExitCode      *int       // nil: none
	Signal        string
}

// AttemptFilter says which claims to list. The zero filter is none: To says up to when.
type AttemptFilter struct {
	From     Moment // claims that had not ended at this moment; zero: from the beginning
	To       Moment // claims that had begun at this moment
	Job      int64  // the job's number; 0: all
	Worker   string // the name of a worker, or the boot of one process of it; "": all
	Queue    string
	Outcomes []event.Kind // how it ended; 0 among them: not yet. None: all
	Overlap  bool         // only claims under which a job ran while another owner worked on it too
	After    int64        // claims whose Pos is greater: the next page
	Limit    int          // at most so many; 0: no limit
	Last     bool         // the last Limit of them, instead of the first; After must be 0
}

// attemptColumns reads the claim c, the enqueued event q of its job and the event z that ended it, if any.
// The end is the first event of the job after the claim that is no heartbeat and no takeover, and the event
// before it is the last sign of life.
const attemptColumns = `SELECT c.pos, c.job, q.ulid, c.attempt, q.data ->> 'queue', c.worker, c.at, z.at, z.kind,
    CAST(z.data ->> 'exit_code' AS BIGINT), z.data ->> 'signal',
    (SELECT CASE WHEN h.kind IN (3, 30) THEN h.at END FROM events h
     WHERE h.job = c.job AND h.seq < coalesce(z.seq, 9223372036854775807) ORDER BY h.seq DESC LIMIT 1)
FROM `

const attemptEnd = ` JOIN events q ON q.pos = c.job LEFT JOIN events z ON z.pos =
    (SELECT x.pos FROM events x WHERE x.job = c.job AND x.seq > c.seq AND x.kind NOT IN (3, 30)
     ORDER BY x.seq LIMIT 1)
WHERE c.kind = 2 AND c.pos > ? AND c.pos <= ?`

// byWorker reads the index on the claims of a worker. The at of the bounds limits the index, their pos is
// exact.
const byWorker = ` AND c.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)
    AND c.at >= coalesce((SELECT at FROM events WHERE pos = ?), 0) AND c.at <= (SELECT at FROM events WHERE pos = ?)`

// attemptPage is how many claims one query returns.
const attemptPage = 512

// Attempts returns the claims that f selects, in the order in which they began: those that were held at From,
// then those that began after it. With a worker and a time it reads only the claims of that worker; for most
// claims that began before the time, the row of the job shows that they had ended.
func Attempts(ctx context.Context, tx *ledger.Tx, f AttemptFilter) ([]Attempt, error) {
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
	if err != nil {
		return nil, err
	}
	return l.found, nil
}

// attemptList collects the claims that a filter selects, page by page.
type attemptList struct {
	tx       *ledger.Tx
	f        AttemptFilter
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
// keyframe is near that says which these are, and where another way is shorter.
func (l *attemptList) addHeld(ctx context.Context) (done bool, err error) {
	if l.f.Job != 0 || l.f.From.Pos > l.f.To.Pos || l.f.From.Pos <= l.f.After || l.full() {
		return false, nil
	}
	frame, err := keyframe.Near(ctx, l.tx, l.f.From.Pos)
	if frame == nil || err != nil {
		return false, err
	}
	var held []Attempt
	terms, more := l.f.terms(` AND +c.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`)
	for chunk := range chunksOf(frame.Held()) {
		args := append([]any{l.f.After, l.f.From.Pos, l.f.From.Pos}, chunk...)
		found, err := scanAttempts(ctx, l.tx, attemptColumns+`events c`+attemptEnd+
			` AND (z.pos IS NULL OR z.pos > ?) AND c.seq > 0 AND c.job IN (`+placeholders(len(chunk))+`)`+terms,
			append(args, more...)...)
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
			if l.overlaps[a.N], err = overlapping(ctx, l.tx, a.N); err != nil {
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

// heldAtFrom selects the claims that began in a range of pos, up to From at most, and had not ended at From.
// Where no index leads to them, the rows of the jobs do: a row shows more cheaply than the events that its
// job had ended.
func (f AttemptFilter) heldAtFrom(after, until int64) (query string, args []any) {
	from, indexed := f.index()
	if indexed {
		from += ` LEFT JOIN jobs j ON j.n = c.job`
	} else {
		from = `(SELECT n, finished_at FROM jobs WHERE n <= ?) j CROSS JOIN events c ON c.job = j.n`
		args = append(args, until)
	}
	query = attemptColumns + from + attemptEnd + ` AND (j.finished_at IS NULL OR j.finished_at >= ?)
    AND (z.pos IS NULL OR z.pos > ?)`
	terms, more := f.terms(byWorker, after, until)
	return query + terms, append(append(args, after, until, f.From.next, f.From.Pos), more...)
}

// begunAfterFrom selects the claims that began in a range of pos after From.
func (f AttemptFilter) begunAfterFrom(after, until int64) (query string, args []any) {
	from, _ := f.index()
	terms, more := f.terms(byWorker, after, until)
	return attemptColumns + from + attemptEnd + terms, append([]any{after, until}, more...)
}

// index returns the FROM clause that leads to the claims, and whether it uses an index of what f selects.
func (f AttemptFilter) index() (from string, indexed bool) {
	switch {
	case f.Job != 0:
		return `events c`, true
	case f.Worker != "":
		return `events c INDEXED BY claims`, true
	case len(f.Outcomes) == 1 && f.Outcomes[0] == 0: // live claims only
		return `(SELECT n FROM jobs WHERE lease_expires_at > 0) o CROSS JOIN events c ON c.job = o.n`, true
	}
	return `events c`, false
}

// terms returns the conditions of f on claims. That on the worker is given, with its arguments after the
// name.
func (f AttemptFilter) terms(worker string, bounds ...any) (query string, args []any) {
	add := func(term string, values ...any) {
		query, args = query+term, append(args, values...)
	}
	if f.Job != 0 {
		add(` AND c.job = ? AND c.seq > 0`, f.Job)
	}
	if f.Worker != "" {
		add(worker, append([]any{f.Worker, f.Worker}, bounds...)...)
	}
	if f.Queue != "" {
		add(` AND q.data ->> 'queue' = ?`, f.Queue)
	}
	if len(f.Outcomes) > 0 {
		add(` AND coalesce(z.kind, 0) IN (` + placeholders(len(f.Outcomes)) + `)`)
		for _, k := range f.Outcomes {
			args = append(args, int64(k))
		}
	}
	if f.Overlap {
		add(` AND EXISTS (SELECT 1 FROM events r WHERE r.job = c.job AND r.seq IS NULL AND r.kind = 11)`)
	}
	return query, args
}

func scanAttempts(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Attempt,
	err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a Attempt
		var worker, claimed int64
		var ended, kind, code, beat sql.NullInt64
		var signal sql.NullString
		err := rows.Scan(&a.Pos, &a.N, &a.Job, &a.Attempt, &a.Queue, &worker, &claimed,
			&ended, &kind, &code, &signal, &beat)
		if err != nil {
			return nil, err
		}
		if a.Worker, err = tx.WorkerOf(ctx, worker); err != nil {
			return nil, fmt.Errorf("event %d: %w", a.Pos, err)
		}
		a.ClaimedAt, a.LastHeartbeat = event.FromMicros(claimed), event.FromMicros(beat.Int64)
		a.EndedAt = event.FromMicros(ended.Int64)
		a.Outcome, a.Signal = event.Kind(kind.Int64), signal.String
		if code.Valid {
			exit := int(code.Int64)
			a.ExitCode = &exit
		}
		found = append(found, a)
	}
	return found, rows.Err()
}

// overlapping returns the attempts of job n that ran at the same time as another one. A refused write shows
// that its owner was still at work: every claim that had begun since overlaps with it.
func overlapping(ctx context.Context, tx *ledger.Tx, n int64) (map[int]bool, error) {
	attempts := make(map[int]bool)
	latest := 0
	f := ledger.Filter{Job: n, Kinds: []event.Kind{event.KindClaimed, event.KindRefused}}
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

// OwnerAt returns the state of job n at m, and the claim that held it then; the zero Attempt if none did. A
// claim holds a job from its beginning until just before its end.
func OwnerAt(ctx context.Context, tx *ledger.Tx, n int64, m Moment) (event.State, Attempt, error) {
	var state event.State
	err := table.ScanOne(ctx, tx, stateAt, []any{&state}, n, m.Pos)
	if err != nil || !state.Held() {
		return state, Attempt{}, err
	}
	found, err := scanAttempts(ctx, tx, lastAttempt, 0, m.Pos, n)
	if err != nil || len(found) == 0 {
		return state, Attempt{}, err
	}
	return state, found[0], nil
}

const (
	stateAt = `SELECT e.to_state FROM events e WHERE e.job = ? AND e.seq > 0 AND e.pos <= ?
ORDER BY e.seq DESC LIMIT 1`
	lastAttempt = attemptColumns + `events c` + attemptEnd +
		` AND c.job = ? AND c.seq > 0 ORDER BY c.seq DESC LIMIT 1`
)

// IDOf returns the id of job n; "" if there is none.
func IDOf(ctx context.Context, tx *ledger.Tx, n int64) (id event.JobID, err error) {
	err = table.ScanOne(ctx, tx, `SELECT ulid FROM events WHERE pos = ? AND kind = 1`, []any{&id}, n)
	return id, err
}
