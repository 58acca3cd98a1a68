package inbox

import (
	"context"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Row is a row of the inbox.
type Row struct {
	N       int64
	ID      string // of the job; not checked yet
	Job     string // JSON
	Payload []byte
	Asked   int64  // when, by the clock of the database: see At
	Role    string // the user of the server who asked; "": a file knows none
	Taken   bool   // the ledger has a job with this id
}

// At returns when the job was asked for.
func (r Row) At() time.Time { return event.FromMicros(r.Asked) }

const maxBytes = "8388608" // of the rows of Next; the row that exceeds it is the last one

var selectNext = `SELECT i.n, i.id, i.job, i.payload, i.at, i.role,
    CASE WHEN EXISTS (SELECT 1 FROM jobs j WHERE j.id = i.id) THEN 1 ELSE 0 END
FROM inbox i WHERE i.n IN (SELECT s.n FROM (
    SELECT h.n AS n, sum(h.size) OVER (ORDER BY h.n) - h.size AS ahead FROM (
        SELECT r.n AS n, octet_length(r.job) + coalesce(octet_length(r.payload), 0) AS size
        FROM inbox r ORDER BY r.n LIMIT ?) AS h) AS s WHERE s.ahead < ` + maxBytes + `)
ORDER BY i.n`

// MaxRows is how many rows Next returns at most.
const MaxRows = 256

// Next returns the rows in front, in their order: up to limit of them, and fewer where they are large.
func Next(ctx context.Context, tx *ledger.Tx, limit int) ([]Row, error) {
	rows, err := tx.QueryState(ctx, selectNext, limit)
	return table.All(rows, err, func(r *Row) []any {
		return []any{&r.N, &r.ID, &r.Job, &r.Payload, &r.Asked, &r.Role, &r.Taken}
	})
}

var remove = `DELETE FROM inbox WHERE n IN (` + table.Placeholders(table.Chunk) + `)`

// Remove removes rows that Next returned in this transaction.
func Remove(tx *ledger.Tx, rows []Row) error {
	ns := make([]int64, len(rows))
	for i, r := range rows {
		ns[i] = r.N
	}
	for args := range table.Chunks(ns) {
		if _, err := tx.Exec(remove, args...); err != nil {
			return err
		}
	}
	return nil
}

// Question is whether the inbox has a row, which the database may find out meanwhile.
type Question struct {
	asked *ledger.PendingQuery
	err   error
}

// Ask asks whether the inbox has a row. Answer must be called.
func Ask(tx *ledger.Tx) (q Question) {
	q.asked, q.err = tx.Prefetch(`SELECT 1 FROM inbox LIMIT 1`)
	return q
}

// Answer waits for the answer.
func (q Question) Answer(ctx context.Context) (some bool, err error) {
	if q.err != nil {
		return false, q.err
	}
	rows, err := q.asked.Rows(ctx)
	var one int64
	return table.First(rows, err, &one)
}

// Age returns how long the oldest row has waited.
func (c Counts) Age(now time.Time) time.Duration {
	if c.Oldest == 0 {
		return 0
	}
	return max(0, now.Sub(event.FromMicros(c.Oldest)))
}

// Counts are how many rows there are.
type Counts struct {
	Waiting int64
	Oldest  int64 // when the first of these was asked for, in microseconds since 1970; 0: none waits
	Refused int64
}

// Count counts the rows.
func Count(ctx context.Context, tx *ledger.Tx) (c Counts, err error) {
	const query = `SELECT count(*), coalesce(min(at), 0), (SELECT count(*) FROM inbox_refused) FROM inbox`
	err = table.ScanOne(ctx, tx, query, []any{&c.Waiting, &c.Oldest, &c.Refused})
	return c, err
}

const selectWaiting = `SELECT n, id, job, at, role FROM inbox `

func (r *Row) columns() []any { return []any{&r.N, &r.ID, &r.Job, &r.Asked, &r.Role} }

// All returns the rows that wait, without their payloads, in their order; up to limit of them.
func All(ctx context.Context, tx *ledger.Tx, limit int) ([]Row, error) {
	rows, err := tx.Query(ctx, selectWaiting+`ORDER BY n LIMIT ?`, limit)
	return table.All(rows, err, (*Row).columns)
}

// Find returns the row of a job that is not in the ledger yet; ok is false if there is none.
func Find(ctx context.Context, tx *ledger.Tx, id event.JobID) (r Row, ok bool, err error) {
	rows, err := tx.Query(ctx, selectWaiting+`WHERE id IN (?, ?) ORDER BY n LIMIT 1`, string(id),
		strings.ToLower(string(id)))
	ok, err = table.First(rows, err, r.columns()...)
	return r, ok, err
}
