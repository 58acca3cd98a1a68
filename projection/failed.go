package projection

import (
	"cmp"
	"context"
	"database/sql"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/fingerprint"
	"jobledger/projection/internal/table"
)

// codeOfFailure is the error code of the event e, which is failed or reclaimed.
const codeOfFailure = `coalesce(e.data ->> 'error_code', e.data ->> 'reason', '')`

var failuresOf = event.SQL(`SELECT e.job, e.pos, ` + codeOfFailure + `,
    CAST(e.data ->> 'exit_code' AS BIGINT), coalesce(e.data ->> 'signal', ''),
    coalesce(e.data ->> 'error_detail', '')
FROM events e WHERE e.seq > 0 AND e.kind IN ({failed}, {reclaimed}) AND e.pos <= ? AND e.job IN (`)

// failedBatch is how many jobs one query asks for.
const failedBatch = 500

// eachFailure calls fn with the pos and the fingerprint of each failure of the jobs ns up to the pos until.
func eachFailure(ctx context.Context, tx *ledger.Tx, ns []int64, until int64,
	fn func(n, pos int64, id string)) (err error) {
	for len(ns) > 0 && err == nil {
		args := []any{until}
		for _, n := range ns[:min(len(ns), failedBatch)] {
			args = append(args, n)
		}
		ns = ns[len(args)-1:]
		rows, queryErr := tx.Query(ctx, failuresOf+table.Placeholders(len(args)-1)+`)`, args...)
		var n, pos int64
		var code, signal, detail string
		var exit sql.NullInt64
		err = table.Each(rows, queryErr, []any{&n, &pos, &code, &exit, &signal, &detail}, func() error {
			var number *int
			if exit.Valid {
				number = new(int(exit.Int64))
			}
			fn(n, pos, fingerprint.Of(code, number, signal, detail))
			return nil
		})
	}
	return err
}

// Failure is a failure of a job.
type Failure struct {
	Pos         int64 // of the event failed or reclaimed
	Fingerprint string
}

// LastFailures returns the last failure of each of the jobs ns that has one, up to the pos until; 0: of all.
func LastFailures(ctx context.Context, tx *ledger.Tx, ns []int64, until int64) (map[int64]Failure, error) {
	last := make(map[int64]Failure, len(ns))
	err := eachFailure(ctx, tx, ns, cmp.Or(until, math.MaxInt64), func(n, pos int64, id string) {
		if pos > last[n].Pos {
			last[n] = Failure{pos, id}
		}
	})
	return last, err
}

// asksFailures reports whether f selects by fingerprints.
func (f Filter) asksFailures() bool { return f.Failure != "" || f.LastFailure != "" }

// failedBetween is a condition on job j that holds of more jobs than have the fingerprint.
var failedBetween = event.SQL(`EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.seq > 0 AND
    e.kind IN ({failed}, {reclaimed}) AND e.pos > ? AND e.pos <= ?)`)

// addFailed adds what f says of failures up to the pos until, as far as the database compares it.
func (f Filter) addFailed(c *conditions, until int64) {
	if f.asksFailures() {
		c.add(failedBetween, f.FailedAfter, min(until, cmp.Or(f.FailedUntil, math.MaxInt64)))
	}
}

// withFailures returns those of jobs, as they were at the pos until, that have the fingerprints of f; nil if
// f asks for none.
func (f Filter) withFailures(ctx context.Context, tx *ledger.Tx, jobs []Job, until int64) (
	have map[int64]bool, err error) {
	if !f.asksFailures() {
		return nil, nil
	}
	var ns []int64
	for _, j := range jobs {
		if f.LastFailure == "" || j.ErrorCode != "" {
			ns = append(ns, j.N)
		}
	}
	met, last := make(map[int64]bool), make(map[int64]Failure)
	within := func(pos int64) bool {
		return pos > f.FailedAfter && (f.FailedUntil == 0 || pos <= f.FailedUntil)
	}
	err = eachFailure(ctx, tx, ns, until, func(n, pos int64, id string) {
		if id == f.Failure && within(pos) {
			met[n] = true
		}
		if pos > last[n].Pos {
			last[n] = Failure{pos, id}
		}
	})
	have = make(map[int64]bool)
	for n, failure := range last {
		have[n] = (f.Failure == "" || met[n]) &&
			(f.LastFailure == "" || failure.Fingerprint == f.LastFailure && within(failure.Pos))
	}
	return have, err
}
