package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// selection is the columns that a query reads.
type selection struct {
	places []int  // in columns
	list   string // as the select list of a query on jobs j
}

func selectColumns(without ...string) (s selection) {
	var names []string
	for i, name := range table.Columns {
		if !slices.Contains(without, name) {
			s.places, names = append(s.places, i), append(names, "j."+name)
		}
	}
	s.list = strings.Join(names, ", ")
	return s
}

var (
	wholeRow = selectColumns()

	// queuedRow leaves out what is null in a queued job, and the lane, which the query asks for.
	queuedRow = selectColumns("lane", "worker", "lease_token", "claimed_at", "heartbeat_at", "lease_expires_at", "end_by", "finished_at")
)

// rare is what few jobs have, as the JSON of the column more.
type rare struct {
	Version     string            `json:"version,omitempty"`
	Requires    []string          `json:"requires,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Progress    *float64          `json:"progress,omitempty"`
	Note        string            `json:"note,omitempty"`
	ErrorDetail string            `json:"error_detail,omitempty"`
	Erased      bool              `json:"erased,omitempty"`
}

// empty does not tell an empty list from none: a replay knows none only.
func (m rare) empty() bool {
	return m.Version == "" && len(m.Requires) == 0 && len(m.Tags) == 0 && m.Progress == nil && m.Note == "" && m.ErrorDetail == "" && !m.Erased
}

// RowOf returns j as a row. Names that are not in the dictionary are written there.
func RowOf(ctx context.Context, tx *ledger.Tx, j Job) (r table.Row, err error) {
	queue, err := tx.Name(ctx, j.Queue)
	if err != nil {
		return r, err
	}
	worker, err := tx.Worker(ctx, j.Worker)
	if err != nil {
		return r, err
	}
	more := rare{j.Version, j.Requires, j.Tags, j.Progress, j.Note, j.ErrorDetail, j.Erased}
	var moreText any
	if !more.empty() {
		text, err := json.Marshal(more)
		if err != nil {
			return r, err
		}
		moreText = string(text)
	}
	return table.Row{j.N, string(j.ID), j.Seq, int64(j.State), table.Text(laneOf(j)), queue, int64(j.Priority), ledger.Micros(j.RunAt), table.Text(j.Key),
		int64(j.Attempt), int64(j.Failures), int64(j.Snoozes), int64(j.MaxAttempts), table.Number(j.MaxRuntime.Microseconds()),
		table.Number(worker), table.Text(j.Token), table.Moment(j.ClaimedAt), table.Moment(j.HeartbeatAt), table.Moment(j.LeaseUntil), table.Moment(j.EndBy),
		table.Moment(j.FinishedAt), table.Text(j.ErrorCode), moreText}, nil
}

// scanJob reads a job from a row that begins with what, and what the query selects behind that into behind.
func scanJob(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, what *selection, j *Job, behind ...any) (err error) {
	var state, queue, runAt int64
	var key, token, code, more, laneText sql.NullString
	var runtime, worker, claimed, heartbeat, lease, endBy, finished sql.NullInt64
	all := [table.Width]any{&j.N, &j.ID, &j.Seq, &state, &laneText, &queue, &j.Priority, &runAt, &key, &j.Attempt, &j.Failures,
		&j.Snoozes, &j.MaxAttempts, &runtime, &worker, &token, &claimed, &heartbeat, &lease, &endBy, &finished, &code, &more}
	var into [table.Width + 2]any
	n := 0
	for ; n < len(what.places); n++ {
		into[n] = all[what.places[n]]
	}
	n += copy(into[n:], behind)
	if err := rows.Scan(into[:n]...); err != nil {
		return err
	}
	j.State, j.RunAt, j.Key, j.Token, j.ErrorCode = ledger.State(state), ledger.FromMicros(runAt), key.String, token.String, code.String
	j.MaxRuntime = time.Duration(runtime.Int64) * time.Microsecond
	j.ClaimedAt, j.HeartbeatAt, j.LeaseUntil = ledger.FromMicros(claimed.Int64), ledger.FromMicros(heartbeat.Int64), ledger.FromMicros(lease.Int64)
	j.EndBy, j.FinishedAt = ledger.FromMicros(endBy.Int64), ledger.FromMicros(finished.Int64)
	if j.Queue, err = tx.NameOf(ctx, queue); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if j.Worker, err = tx.WorkerOf(ctx, worker.Int64); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if more.Valid {
		var m rare
		if err := json.Unmarshal([]byte(more.String), &m); err != nil {
			return fmt.Errorf("%w: job %s: column more: %w", ledger.ErrDamaged, j.ID, err)
		}
		j.Version, j.Requires, j.Tags, j.Progress = m.Version, m.Requires, m.Tags, m.Progress
		j.Note, j.ErrorDetail, j.Erased = m.Note, m.ErrorDetail, m.Erased
	}
	return nil
}

// Put makes the row of a job say new where it stands at old: an insert when old is the zero Job, else an update of
// the columns that differ, WHERE seq is still the one of old (I3). ledger.ErrConflict if it has moved on; the
// writer may notice that only when it sends its buffer, and then runs the caller again. A queued job is added to the
// cache of claims.
func Put(ctx context.Context, tx *ledger.Tx, old, new Job) error {
	after, err := RowOf(ctx, tx, new)
	if err != nil {
		return err
	}
	if new.State == ledger.Queued {
		cacheQueued(tx, new)
	}
	if old.N == 0 {
		return tx.Insert(table.New, after[:]...)
	}
	before, err := RowOf(ctx, tx, old)
	if err != nil {
		return err
	}
	var changed uint32
	args := make([]any, 2, table.Width+2)
	args[0], args[1] = old.N, old.Seq
	for i := range after {
		if before[i] != after[i] {
			changed |= 1 << i
			args = append(args, after[i])
		}
	}
	if changed == 0 {
		return nil
	}
	if err := tx.Put(updateJob(changed), args...); err != nil {
		return fmt.Errorf("put job %s over seq %d: %w", old.ID, old.Seq, err)
	}
	return nil
}

// updates holds the List for each set of changed columns; there are some twenty in practice.
var updates sync.Map

func updateJob(changed uint32) *ledger.BulkStmt {
	if l, ok := updates.Load(changed); ok {
		return l.(*ledger.BulkStmt)
	}
	var names []string
	for i, name := range table.Columns {
		if changed&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	l, _ := updates.LoadOrStore(changed, ledger.NewCompareAndSwap("jobs", "n", "seq", table.Types, names...))
	return l.(*ledger.BulkStmt)
}

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

// queryJobs runs a query for jobs. One that begins with selectQueued gets their Salt and Payload too.
func queryJobs(ctx context.Context, tx *ledger.Tx, query string, args ...any) (jobs []Job, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return scanJobs(ctx, tx, rows, strings.HasPrefix(query, selectQueued), 0)
}

// scanJobs reads jobs, withBody those of selectQueued, and closes the rows. There may be about so many.
func scanJobs(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, withBody bool, about int) (jobs []Job, err error) {
	defer rows.Close()
	if about > 0 {
		jobs = make([]Job, 0, about)
	}
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
	}
	return jobs, rows.Err()
}

// selectQueued begins a query for queued jobs with their payloads: what a claim hands out.
var selectQueued = `SELECT ` + queuedRow.list + `, b.salt, b.body FROM jobs j LEFT JOIN bodies b ON b.pos = j.n`

var byID = `SELECT ` + table.List + ` FROM jobs j WHERE j.id = ?`

// Get returns the job with this id; ok is false if there is none.
func Get(ctx context.Context, tx *ledger.Tx, id ledger.JobID) (j Job, ok bool, err error) {
	return queryJob(ctx, tx, byID, string(id))
}

var byKey = `SELECT ` + table.List + ` FROM jobs j WHERE j.queue = ? AND j.key = ?`

// GetByKey returns the job with this key in this queue; ok is false if there is none.
func GetByKey(ctx context.Context, tx *ledger.Tx, queue, key string) (j Job, ok bool, err error) {
	n, err := tx.Name(ctx, queue)
	if err != nil || n == 0 {
		return j, false, err
	}
	return queryJob(ctx, tx, byKey, n, key)
}

// Find returns the jobs whose id begins with prefix, at most limit: what people type is often shortened.
func Find(ctx context.Context, tx *ledger.Tx, prefix string, limit int) ([]Job, error) {
	return queryJobs(ctx, tx, `SELECT `+table.List+` FROM jobs j WHERE j.id >= ?1 AND j.id < ?1 || '~' ORDER BY j.id LIMIT ?2`, prefix, limit)
}

// held finds what one worker holds among all live leases, which are few beside the jobs that have ended. "> 0"
// instead of "IS NOT NULL" because only a range makes SQLite search the index.
var held = `SELECT ` + table.List + ` FROM jobs j WHERE j.lease_expires_at > 0 AND j.worker = ? ORDER BY j.lease_expires_at`

// Held returns the jobs that this worker process owns, the one whose lease ends first before the others.
func Held(ctx context.Context, tx *ledger.Tx, w ledger.Worker) ([]Job, error) {
	n, err := tx.Worker(ctx, w)
	if err != nil || n == 0 {
		return nil, err
	}
	return queryJobs(ctx, tx, held, n)
}

// Lease is one claim as a sweeper sees it.
type Lease struct {
	N           int64
	ID          ledger.JobID
	Token       string
	HeartbeatAt time.Time
	Until       time.Time
}

const expired = `SELECT j.n, j.id, coalesce(j.lease_token, ''), coalesce(j.heartbeat_at, 0), j.lease_expires_at
FROM jobs j WHERE j.lease_expires_at <= ? ORDER BY j.lease_expires_at LIMIT ?`

// Expired returns the leases that ended at now or before, the longest ended first. It only finds candidates, and
// reads nothing of a row that could be damaged: one bad row must not keep a sweeper from the others.
func Expired(ctx context.Context, tx *ledger.Tx, now time.Time, limit int) (leases []Lease, err error) {
	rows, err := tx.QueryState(ctx, expired, ledger.Micros(now), limit)
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
		l.HeartbeatAt, l.Until = ledger.FromMicros(heartbeat), ledger.FromMicros(until)
		leases = append(leases, l)
	}
	return leases, rows.Err()
}

const resultOf = `SELECT b.body FROM events e JOIN bodies b ON b.pos = e.pos WHERE e.job = ? AND e.seq = ?`

// LoadBodies reads j's payload and result.
func LoadBodies(ctx context.Context, tx *ledger.Tx, j *Job) error {
	if j.Erased {
		return nil
	}
	salt, payload, _, err := tx.Body(ctx, j.N)
	if err != nil {
		return err
	}
	j.Salt, j.Payload = salt, payload
	if j.State != ledger.SucceededState {
		return nil
	}
	rows, err := tx.Query(ctx, resultOf, j.N, j.Seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		if err = rows.Scan(&j.Result); j.Result == nil {
			j.Result = []byte{} // there is one, of no bytes
		}
	}
	if err == nil {
		err = rows.Err()
	}
	return err
}
