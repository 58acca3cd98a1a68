package projection

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Attempt is one claim, from its beginning to its end.
type Attempt struct {
	Pos           int64 // of the event claimed
	N             int64 // the job's number
	Job           ledger.JobID
	Attempt       int
	Queue         string
	Worker        ledger.Worker
	ClaimedAt     time.Time
	LastHeartbeat time.Time   // zero: none came
	EndedAt       time.Time   // zero: it has not ended
	Outcome       ledger.Kind // of the event that ended it; 0: it has not ended
	ExitCode      *int        // nil: none
	Signal        string
}

// AttemptFilter says which claims to list. The zero filter is none: To says up to when.
type AttemptFilter struct {
	From     Moment // claims that had not ended at this moment; zero: from the beginning
	To       Moment // claims that had begun at this moment
	Job      int64  // the job's number; 0: all
	Worker   string // the name of a worker, or the boot of one process of it; "": all
	Queue    string
	Outcomes []ledger.Kind // how it ended; 0 among them: not yet. None: all
	Overlap  bool          // only claims under which a job ran while another owner worked on it too
	After    int64         // claims whose Pos is greater: the next page
	Limit    int           // at most so many; 0: no limit
}

// attemptColumns reads the claim c, its job's enqueued event q and the event z that ended it, if any. The end is the
// first event of the job behind the claim that is no heartbeat, and the event before it is the last heartbeat.
const attemptColumns = `SELECT c.pos, c.job, q.ulid, c.attempt, q.data ->> 'queue', c.worker, c.at, z.at, z.kind,
    CAST(z.data ->> 'exit_code' AS BIGINT), z.data ->> 'signal',
    (SELECT CASE h.kind WHEN 3 THEN h.at END FROM events h WHERE h.job = c.job AND h.seq < coalesce(z.seq, 9223372036854775807) ORDER BY h.seq DESC LIMIT 1)
FROM `

const attemptEnd = ` JOIN events q ON q.pos = c.job LEFT JOIN events z ON z.pos =
    (SELECT x.pos FROM events x WHERE x.job = c.job AND x.seq > c.seq AND x.kind <> 3 ORDER BY x.seq LIMIT 1)
WHERE c.kind = 2 AND c.pos > ? AND c.pos <= ?`

// byWorker reads the index on the claims of a worker. The at of the bounds bound the index, their pos is exact.
const byWorker = ` AND c.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)
    AND c.at >= coalesce((SELECT at FROM events WHERE pos = ?), 0) AND c.at <= (SELECT at FROM events WHERE pos = ?)`

// Attempts returns the claims that f selects in the order in which they began. With a worker and a time it reads
// that worker's claims only; of those that began before the time, the row of the job mostly says that they had ended.
func Attempts(ctx context.Context, tx *ledger.Tx, f AttemptFilter) (found []Attempt, err error) {
	running := make(map[int64]map[int]bool)
	// First the claims that were held at From, then those that began behind it.
	for _, held := range []bool{true, false} {
		for f.Limit == 0 || len(found) < f.Limit {
			size := attemptPage
			page, err := attemptsPage(ctx, tx, f, held, size)
			if err != nil {
				return nil, err
			}
			for _, a := range page {
				f.After = a.Pos
				if f.Overlap {
					if running[a.N] == nil {
						if running[a.N], err = overlapping(ctx, tx, a.N); err != nil {
							return nil, err
						}
					}
					if !running[a.N][a.Attempt] {
						continue
					}
				}
				if found = append(found, a); len(found) == f.Limit {
					return found, nil
				}
			}
			if len(page) < size {
				break
			}
		}
	}
	return found, nil
}

// attemptPage is how many claims one query gives.
const attemptPage = 512

// attemptsPage returns the next claims behind f.After: of those that began up to f.From and were held then, or of
// those that began behind it.
func attemptsPage(ctx context.Context, tx *ledger.Tx, f AttemptFilter, held bool, limit int) ([]Attempt, error) {
	after, until := max(f.After, f.From.Pos), f.To.Pos
	if held {
		after, until = f.After, min(f.From.Pos, f.To.Pos)
	}
	if after >= until {
		return nil, nil
	}
	// What leads to the claims: an index, or the rows of the jobs that come into question. The row of a job j says
	// more cheaply than its events that it had ended before, and all its claims with it.
	from, args := `events c`, []any{}
	switch open := len(f.Outcomes) == 1 && f.Outcomes[0] == 0; {
	case f.Job != 0:
	case f.Worker != "":
		from = `events c INDEXED BY claims`
	case open:
		from = `(SELECT n FROM jobs WHERE lease_expires_at > 0) o CROSS JOIN events c ON c.job = o.n`
	case held:
		from, args = `(SELECT n, finished_at FROM jobs WHERE n <= ?) j CROSS JOIN events c ON c.job = j.n`, []any{until}
	}
	if held && len(args) == 0 {
		from += ` LEFT JOIN jobs j ON j.n = c.job`
	}
	query := attemptColumns + from + attemptEnd
	args = append(args, after, until)
	add := func(term string, values ...any) {
		query, args = query+term, append(args, values...)
	}
	if held {
		add(` AND (j.finished_at IS NULL OR j.finished_at >= ?) AND (z.pos IS NULL OR z.pos > ?)`, f.From.next, f.From.Pos)
	}
	if f.Job != 0 {
		add(` AND c.job = ? AND c.seq > 0`, f.Job)
	}
	if f.Worker != "" {
		add(byWorker, f.Worker, f.Worker, after, until)
	}
	if f.Queue != "" {
		add(` AND q.data ->> 'queue' = ?`, f.Queue)
	}
	if len(f.Outcomes) > 0 {
		add(` AND coalesce(z.kind, 0) IN (` + marks(len(f.Outcomes)) + `)`)
		for _, k := range f.Outcomes {
			args = append(args, int64(k))
		}
	}
	if f.Overlap {
		add(` AND EXISTS (SELECT 1 FROM events r WHERE r.job = c.job AND r.seq IS NULL AND r.kind = 11)`)
	}
	add(` ORDER BY c.pos LIMIT ?`, limit)
	return scanAttempts(ctx, tx, query, args...)
}

func scanAttempts(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Attempt, err error) {
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
		if err := rows.Scan(&a.Pos, &a.N, &a.Job, &a.Attempt, &a.Queue, &worker, &claimed, &ended, &kind, &code, &signal, &beat); err != nil {
			return nil, err
		}
		if a.Worker, err = tx.WorkerOf(ctx, worker); err != nil {
			return nil, fmt.Errorf("event %d: %w", a.Pos, err)
		}
		a.ClaimedAt, a.LastHeartbeat, a.EndedAt = ledger.FromMicros(claimed), ledger.FromMicros(beat.Int64), ledger.FromMicros(ended.Int64)
		a.Outcome, a.Signal = ledger.Kind(kind.Int64), signal.String
		if code.Valid {
			exit := int(code.Int64)
			a.ExitCode = &exit
		}
		found = append(found, a)
	}
	return found, rows.Err()
}

// overlapping returns the attempts of job n that ran beside another one in the world. That an owner was still at work
// shows in a write of its that was refused: every claim that had begun since ran beside it.
func overlapping(ctx context.Context, tx *ledger.Tx, n int64) (map[int]bool, error) {
	attempts := make(map[int]bool)
	latest := 0
	for e, err := range tx.Events(ctx, ledger.Filter{Job: n, Kinds: []ledger.Kind{ledger.KindClaimed, ledger.KindRefused}}) {
		if err != nil {
			return nil, err
		}
		switch {
		case e.Kind() == ledger.KindClaimed:
			latest = e.Attempt
		case e.Attempt > 0:
			for a := e.Attempt; a <= latest && e.Attempt < latest; a++ {
				attempts[a] = true
			}
		}
	}
	return attempts, nil
}

// OwnerAt returns the state of job n at m, and the claim under which it was held then; the zero Attempt if nobody
// held it. A claim holds from its beginning to right before its end.
func OwnerAt(ctx context.Context, tx *ledger.Tx, n int64, m Moment) (ledger.State, Attempt, error) {
	var state ledger.State
	err := table.ScanOne(ctx, tx, stateAt, []any{&state}, n, m.Pos)
	if err != nil || !state.Held() {
		return state, Attempt{}, err
	}
	found, err := scanAttempts(ctx, tx, attemptColumns+`events c`+attemptEnd+` AND c.job = ? AND c.seq > 0 ORDER BY c.seq DESC LIMIT 1`, 0, m.Pos, n)
	if err != nil || len(found) == 0 {
		return state, Attempt{}, err
	}
	return state, found[0], nil
}

const stateAt = `SELECT e.to_state FROM events e WHERE e.job = ? AND e.seq > 0 AND e.pos <= ? ORDER BY e.seq DESC LIMIT 1`

// IDOf returns the id of job n; "" if there is none.
func IDOf(ctx context.Context, tx *ledger.Tx, n int64) (id ledger.JobID, err error) {
	err = table.ScanOne(ctx, tx, `SELECT ulid FROM events WHERE pos = ? AND kind = 1`, []any{&id}, n)
	return id, err
}
