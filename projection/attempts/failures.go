package attempts

import (
	"cmp"
	"context"
	"database/sql/driver"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/fingerprint"
	"jobledger/projection/internal/table"
)

// Failed is one attempt among those that failed alike.
type Failed struct {
	Pos    int64 // of the event that ended it
	At     time.Time
	Detail string // the last line that is not blank
}

// Failure is an attempt that ended badly.
type Failure struct {
	Failed
	N       int64 // the job's number
	Job     event.JobID
	Attempt int
	Queue   string
	Worker  event.Worker // that had the job
	Code    string       // the error code, or the reason of one that was taken back or released
	Exit    projection.Exit
	Kind    event.Kind // of the event that ended it
	GivenUp bool       // the job is not tried again
}

// FailureFilter selects the attempts that ended as one of Kinds after a pos, up to another.
type FailureFilter struct {
	After, Until  int64
	Queue, Worker string // "": all
	Kinds         []event.Kind
}

const failures = `SELECT e.pos, e.at, e.job, q.ulid, e.attempt, q.data ->> 'queue', e.worker,
    coalesce(e.data ->> 'error_code', e.data ->> 'reason', ''), e.data ->> 'error_detail', e.kind, e.to_state,
    CAST(e.data ->> 'exit_code' AS BIGINT), e.data ->> 'signal'
FROM events e CROSS JOIN events q WHERE q.pos = e.job AND e.pos > ? AND e.pos <= ? AND e.kind IN (`

// where adds to a query what f says, with these kinds; queue is the expression of the queue's name.
func (f FailureFilter) where(query, queue string, kinds []event.Kind) (text string, args []any) {
	text, args = query+table.Placeholders(len(kinds))+`)`, []any{f.After, f.Until}
	for _, k := range kinds {
		args = append(args, int64(k))
	}
	if f.Queue != "" {
		text, args = text+` AND `+queue+` = ?`, append(args, f.Queue)
	}
	if f.Worker != "" {
		text += ` AND e.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`
		args = append(args, f.Worker, f.Worker)
	}
	return text, args
}

// Each calls fn with each of them, in the order in which they ended.
func (f FailureFilter) Each(ctx context.Context, tx *ledger.Tx, fn func(Failure)) (err error) {
	text, args := f.where(failures, `q.data ->> 'queue'`, f.Kinds)
	failed := tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		f := Failure{Failed: Failed{number(0), event.FromMicros(number(1)),
			fingerprint.LastLine(ledger.Text(row[8]))}, N: number(2),
			Job: event.JobID(ledger.Text(row[3])), Attempt: int(number(4)), Queue: ledger.Text(row[5]),
			Code: ledger.Text(row[7]), Kind: event.Kind(number(9)),
			GivenUp: event.State(number(10)) == event.FailedState}
		f.Exit.Signal = ledger.Text(row[12])
		if code, exited := row[11].(int64); exited {
			f.Exit.Code = new(int(code))
		}
		if f.Worker, err = tx.WorkerOf(ctx, number(6)); err == nil {
			fn(f)
		}
		return err == nil
	}, text+` ORDER BY e.pos`, args...)
	return cmp.Or(failed, err)
}

const ended = `SELECT q.name, count(*) FROM events e JOIN jobs j ON j.n = e.job
JOIN names q ON q.n = j.queue WHERE e.pos > ? AND e.pos <= ? AND e.kind IN (`

// Ended returns how many attempts of each queue, and by "" of all, succeeded or ended as one of f.Kinds.
func (f FailureFilter) Ended(ctx context.Context, tx *ledger.Tx) (map[string]int64, error) {
	text, args := f.where(ended, `q.name`, append([]event.Kind{event.KindSucceeded}, f.Kinds...))
	counts := make(map[string]int64)
	rows, err := tx.Query(ctx, text+` GROUP BY q.name`, args...)
	var queue string
	var n int64
	return counts, table.Each(rows, err, []any{&queue, &n}, func() error {
		counts[queue] += n
		counts[""] += n
		return nil
	})
}
