package report

import (
	"cmp"
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Window is what a report is about: the events in a range of positions, and perhaps only some of them.
type Window struct {
	After, Until int64     // the events whose pos is greater than After and at most Until
	Now          time.Time // when it is asked
	End          time.Time // the end of the window; zero: Now
	Queue        string    // only jobs of this queue; "": all
	Worker       string    // only the worker with this name or boot; "": all

	Every time.Duration // Depth: the length of a step, whole seconds; 0: a minute
	Later time.Duration // Backlog: how long after it was enqueued a job should have ended; 0: an hour
	Limit int           // Longest: how many attempts; 0: ten
}

// span returns the window as queries have it.
func (s Window) span(ctx context.Context, tx *ledger.Tx) (span query.Span, err error) {
	span.Queue = s.Queue
	if s.After > 0 {
		if span.From, err = projection.AtPos(ctx, tx, s.After); err != nil {
			return span, err
		}
	}
	if span.To, err = projection.AtPos(ctx, tx, s.Until); err == nil {
		span.To.At = cmp.Or(s.End, s.Now)
	}
	return span, err
}

// Field is a named value of a row: a time.Time, a time.Duration, a string, a []string, an int64 or an
// [jobledger/ledger/event.State]. The zero time, "" and nil mean none.
type Field struct {
	Name  string
	Value any
}

// Row is a line of a report. All rows of a report have the same fields in the same order.
type Row interface {
	Fields() []Field
}

// Report is one of the reports, for a program that shows any of them.
type Report struct {
	Name     string
	Answers  string // the question that it answers
	ByQueue  bool   // whether Window.Queue selects rows
	ByWorker bool   // whether Window.Worker selects rows
	Empty    Row    // a row without values; its fields are the columns
	Rows     func(context.Context, *ledger.Tx, Window) ([]Row, error)
}

// All are the reports, in the order of the help.
var All = []Report{
	{"taken", "which jobs were taken from a worker, and who got them next", true, true,
		TakenJob{}, rows(Taken)},
	{"silent", "which workers went silent without stopping, in order, and what they lost", false, true,
		SilentWorker{}, rows(Silent)},
	{"poison", "which jobs were taken from more than one worker process", true, false, PoisonJob{},
		rows(Poison)},
	{"failures", "how often each error code occurred, in how many jobs, from when to when", true, true,
		Failure{}, rows(Failures)},
	{"longest", "which attempts lasted longest, of those that ended", true, true, LongAttempt{}, rows(Longest)},
	{"depth", "how many jobs of each queue were waiting and how many held, minute by minute", true, false,
		QueueDepth{}, rows(Depth)},
	{"waits", "how long jobs that were ready waited for a worker, by queue", true, false,
		QueueWait{}, rows(Waits)},
	{"backlog", "which jobs had not ended an hour after they were enqueued", true, false,
		LateJob{}, rows(Backlog)},
}

// Named returns the report of this name.
func Named(name string) (Report, bool) {
	for _, r := range All {
		if r.Name == name {
			return r, true
		}
	}
	return Report{}, false
}

// rows makes a report of a function that returns rows of a type of its own.
func rows[R Row](ask func(context.Context, *ledger.Tx, Window) ([]R, error)) func(
	context.Context, *ledger.Tx, Window) ([]Row, error) {
	return func(ctx context.Context, tx *ledger.Tx, s Window) ([]Row, error) {
		found, err := ask(ctx, tx, s)
		all := make([]Row, 0, len(found))
		for _, r := range found {
			all = append(all, r)
		}
		return all, err
	}
}

// each calls fn for each row of a query.
func each(ctx context.Context, tx *ledger.Tx, fn func(*ledger.Rows) error, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// among returns the condition that a job's queue and a worker are those of s, for a query that calls the
// enqueued event q and the event with the worker e.
func (s Window) among() (terms string, args []any) {
	if s.Queue != "" {
		terms, args = ` AND q.data ->> 'queue' = ?`, append(args, s.Queue)
	}
	if s.Worker != "" {
		terms += ` AND e.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`
		args = append(args, s.Worker, s.Worker)
	}
	return terms, args
}
