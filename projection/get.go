package projection

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// queryJob runs a query for at most one job.
func queryJob(ctx context.Context, tx *ledger.Tx, query string, args ...any) (j Job, ok bool, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	if err != nil {
		return j, false, err
	}
	defer rows.Close()
	if ok = rows.Next(); ok {
		err = scanJob(ctx, tx, rows, &wholeRow, &j)
	}
	if err == nil {
		err = rows.Err()
	}
	return j, ok, err
}

// queryJobs runs a query for jobs. One that begins with selectQueued also reads their Salt and Payload.
func queryJobs(ctx context.Context, tx *ledger.Tx, query string, args ...any) (jobs []Job, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanJobs(ctx, tx, rows, strings.HasPrefix(query, selectQueued), 0)
}

// scanJobs reads jobs and closes the rows; withBody says that the query is one of selectQueued. about is how
// many jobs to expect; 0: unknown.
func scanJobs(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, withBody bool, about int) (
	jobs []Job, err error) {
	defer rows.Close()
	if about > 0 {
		jobs = make([]Job, 0, about)
	}
	replaced := false
	for rows.Next() {
		jobs = append(jobs, Job{})
		j := &jobs[len(jobs)-1]
		if withBody {
			err = scanJob(ctx, tx, rows, &queuedRow, j, &j.Salt, &j.Payload)
			if j.Payload == nil && j.Salt != nil {
				j.Payload = []byte{} // an empty payload is not an erased one
			}
		} else {
			err = scanJob(ctx, tx, rows, &wholeRow, j)
		}
		if err != nil {
			return nil, err
		}
		replaced = replaced || withBody && j.PayloadAt != 0
	}
	if err := rows.Err(); err != nil || !replaced {
		return jobs, err
	}
	return jobs, loadReplaced(ctx, tx, jobs)
}

// loadReplaced reads the payloads that were given to jobs after they were enqueued.
func loadReplaced(ctx context.Context, tx *ledger.Tx, jobs []Job) (err error) {
	for i := range jobs {
		if j := &jobs[i]; j.PayloadAt != 0 && !j.Erased {
			if _, j.Payload, _, err = tx.Body(ctx, j.PayloadAt); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectQueued begins a query for queued jobs with their payloads, which is what a claim returns.
var selectQueued = `SELECT ` + queuedRow.list + `, b.salt, b.body FROM jobs j
LEFT JOIN bodies b ON b.pos = j.n`

var byID = `SELECT ` + table.List + ` FROM jobs j WHERE j.id = ?`

// Get returns the job with this id; ok is false if there is none.
func Get(ctx context.Context, tx *ledger.Tx, id event.JobID) (j Job, ok bool, err error) {
	return queryJob(ctx, tx, byID, string(id))
}

var idTaken = `SELECT n FROM jobs WHERE id = ?`

// GetUnexpected is Get for an id that is hardly ever taken. It lets what this transaction has written wait to
// be sent in bulk, unless the id is taken.
func GetUnexpected(ctx context.Context, tx *ledger.Tx, id event.JobID) (j Job, ok bool, err error) {
	taken := tx.Unsent(string(id))
	if !taken {
		rows, err := tx.QuerySent(ctx, idTaken, string(id))
		if err != nil {
			return j, false, err
		}
		defer rows.Close()
		if taken = rows.Next(); rows.Err() != nil || !taken {
			return j, false, rows.Err()
		}
	}
	return Get(ctx, tx, id)
}

var byKey = `SELECT ` + table.List + ` FROM jobs j WHERE j.queue = ? AND j.key = ?`

// GetByKey returns the job that has this key in this queue; ok is false if there is none, or not any more.
func GetByKey(ctx context.Context, tx *ledger.Tx, queue, key string) (j Job, ok bool, err error) {
	n, err := tx.Name(ctx, queue)
	if err != nil || n == 0 {
		return j, false, err
	}
	return queryJob(ctx, tx, byKey, n, key)
}

// KeyHolder returns the job that has the key which j has given up; ok is false if there is none.
func KeyHolder(ctx context.Context, tx *ledger.Tx, j Job) (holder Job, ok bool, err error) {
	if j.Key == "" || !j.KeyFree {
		return holder, false, nil
	}
	return GetByKey(ctx, tx, j.Queue, j.Key)
}

var byNumbers = `SELECT ` + table.List + ` FROM jobs j WHERE j.n IN (` + table.Placeholders(table.Chunk) + `)`

// GetMany returns the jobs with these numbers, by number.
func GetMany(ctx context.Context, tx *ledger.Tx, ns []int64) (map[int64]Job, error) {
	found := make(map[int64]Job, len(ns))
	for chunk := range table.Chunks(ns) {
		jobs, err := queryJobs(ctx, tx, byNumbers, chunk...)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			found[j.N] = j
		}
	}
	return found, nil
}

// held searches the live leases, which are few compared with the ended jobs. "> 0" instead of "IS NOT NULL"
// because only a range makes SQLite search the index.
var held = `SELECT ` + table.List + ` FROM jobs j
WHERE j.lease_expires_at > 0 AND j.worker = ? ORDER BY j.lease_expires_at`

// Held returns the jobs that a worker process owns, ordered by the ends of their leases.
func Held(ctx context.Context, tx *ledger.Tx, w event.Worker) ([]Job, error) {
	n, err := tx.Worker(ctx, w)
	if err != nil || n == 0 {
		return nil, err
	}
	return queryJobs(ctx, tx, held, n)
}

const claimsHeld = `SELECT j.n, j.worker, coalesce(j.lease_token, '')
FROM jobs j WHERE j.lease_expires_at > 0`

// HeldWhere returns the jobs with a live claim for which wanted is true of its process and its token, ordered
// by the ends of their leases. It reads whole rows of these only.
func HeldWhere(ctx context.Context, tx *ledger.Tx, wanted func(w event.Worker, token string) bool) (
	[]Job, error) {
	type claim struct {
		job, worker int64
		token       string
	}
	rows, err := tx.QueryState(ctx, claimsHeld)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claims []claim
	for rows.Next() {
		var c claim
		if err := rows.Scan(&c.job, &c.worker, &c.token); err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	var numbers []int64
	for _, c := range claims {
		w, err := tx.WorkerOf(ctx, c.worker)
		if err != nil {
			return nil, err
		}
		if wanted(w, c.token) {
			numbers = append(numbers, c.job)
		}
	}
	found, err := GetMany(ctx, tx, numbers)
	return slices.SortedFunc(maps.Values(found), func(a, b Job) int {
		return cmp.Or(a.LeaseUntil.Compare(b.LeaseUntil), cmp.Compare(a.N, b.N))
	}), err
}

var allHeld = `SELECT ` + table.List + ` FROM jobs j WHERE j.lease_expires_at > 0 ORDER BY j.claimed_at, j.n`

// AllHeld returns the jobs that any worker process owns, the oldest claim first.
func AllHeld(ctx context.Context, tx *ledger.Tx) ([]Job, error) { return queryJobs(ctx, tx, allHeld) }

// Lease is a live claim as a sweeper reads it.
type Lease struct {
	N           int64
	ID          event.JobID
	Token       string
	HeartbeatAt time.Time
	Until       time.Time
}

const expired = `SELECT j.n, j.id, coalesce(j.lease_token, ''), coalesce(j.heartbeat_at, 0),
    j.lease_expires_at
FROM jobs j WHERE j.lease_expires_at <= ? ORDER BY j.lease_expires_at LIMIT ?`

// Expired returns up to limit leases that ended at now or before, in the order of their ends. It only finds
// candidates, and reads no column that may be damaged: one bad row must not keep a sweeper from the others.
func Expired(ctx context.Context, tx *ledger.Tx, now time.Time, limit int) (leases []Lease, err error) {
	rows, err := tx.QueryState(ctx, expired, event.Micros(now), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l Lease
		var heartbeat, until int64
		if err := rows.Scan(&l.N, &l.ID, &l.Token, &heartbeat, &until); err != nil {
			return nil, err
		}
		l.HeartbeatAt, l.Until = event.FromMicros(heartbeat), event.FromMicros(until)
		leases = append(leases, l)
	}
	return leases, rows.Err()
}

// LiveTokens returns the tokens of those of the jobs that are held.
func LiveTokens(ctx context.Context, tx *ledger.Tx, jobs []Job) (map[string]bool, error) {
	live := make(map[string]bool, len(jobs))
	if len(jobs) == 0 {
		return live, nil
	}
	var numbers []any
	for _, j := range jobs {
		numbers = append(numbers, j.N)
	}
	rows, err := tx.Query(ctx, `SELECT lease_token FROM jobs WHERE lease_token IS NOT NULL AND n IN (`+
		table.Placeholders(len(numbers))+`)`, numbers...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var token string
		if err := rows.Scan(&token); err != nil {
			return nil, err
		}
		live[token] = true
	}
	return live, rows.Err()
}

const resultOf = `SELECT b.body FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = ? AND e.seq = ?`

// LoadBodies reads the payload and the result of j.
func LoadBodies(ctx context.Context, tx *ledger.Tx, j *Job) error {
	if j.Erased {
		return nil
	}
	salt, payload, _, err := tx.Body(ctx, j.N)
	if err != nil {
		return err
	}
	j.Salt, j.Payload = salt, payload
	if j.PayloadAt != 0 {
		if _, j.Payload, _, err = tx.Body(ctx, j.PayloadAt); err != nil {
			return err
		}
	}
	if j.State != event.SucceededState {
		return nil
	}
	rows, err := tx.Query(ctx, resultOf, j.N, j.Seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		if err = rows.Scan(&j.Result); j.Result == nil {
			j.Result = []byte{} // an empty result is not a missing one
		}
	}
	if err == nil {
		err = rows.Err()
	}
	return err
}

// IDOf returns the id of job n; "" if there is none.
func IDOf(ctx context.Context, tx *ledger.Tx, n int64) (id event.JobID, err error) {
	err = table.ScanOne(ctx, tx, `SELECT ulid FROM events WHERE pos = ? AND kind = 1`, []any{&id}, n)
	return id, err
}
