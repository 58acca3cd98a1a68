package projection

import (
	"context"

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

// queryJobs runs a query for jobs, without their payloads.
func queryJobs(ctx context.Context, tx *ledger.Tx, query string, args ...any) (jobs []Job, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		jobs = append(jobs, Job{})
		if err := scanJob(ctx, tx, rows, &wholeRow, &jobs[len(jobs)-1]); err != nil {
			return nil, err
		}
	}
	return jobs, rows.Err()
}

// ScanQueued reads the jobs of a query that begins with SelectQueued, with their Salt and Payload, and closes
// the rows. about is how many jobs to expect; 0: unknown.
func ScanQueued(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, about int) (jobs []Job, err error) {
	defer rows.Close()
	if about > 0 {
		jobs = make([]Job, 0, about)
	}
	replaced := false
	for rows.Next() {
		jobs = append(jobs, Job{})
		j := &jobs[len(jobs)-1]
		if err := scanJob(ctx, tx, rows, &queuedRow, j, &j.Salt, &j.Payload); err != nil {
			return nil, err
		}
		if j.Payload == nil && j.Salt != nil {
			j.Payload = []byte{} // an empty payload is not an erased one
		}
		replaced = replaced || j.PayloadAt != 0
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

// SelectQueued begins a query for queued jobs with their payloads, which is what a claim returns; j is the
// table jobs. ScanQueued reads its rows.
var SelectQueued = `SELECT ` + queuedRow.list + `, b.salt, b.body FROM jobs j
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
	if !tx.Unsent(string(id)) {
		rows, err := tx.QuerySent(ctx, idTaken, string(id))
		var n int64
		if taken, err := table.First(rows, err, &n); err != nil || !taken {
			return j, false, err
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

const resultOf = `SELECT e.pos FROM events e WHERE e.job = ? AND e.seq = ?`

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
	var pos int64
	if err := table.ScanOne(ctx, tx, resultOf, []any{&pos}, j.N, j.Seq); err != nil {
		return err
	}
	_, j.Result, _, err = tx.Body(ctx, pos)
	return err
}

var idOf = event.SQL(`SELECT ulid FROM events WHERE pos = ? AND kind = {enqueued}`)

// IDOf returns the id of job n; "" if there is none.
func IDOf(ctx context.Context, tx *ledger.Tx, n int64) (id event.JobID, err error) {
	err = table.ScanOne(ctx, tx, idOf, []any{&id}, n)
	return id, err
}
