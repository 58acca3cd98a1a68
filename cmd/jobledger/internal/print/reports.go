package print

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// Report is a question about a window that people ask by its name, and how its answer is laid out.
type Report struct {
	Name     string
	Answers  string // the question that it answers
	ByQueue  bool   // whether Asked.Queue selects rows
	ByWorker bool   // whether Asked.Worker selects rows
	Columns  []string
	// Rows returns the rows, a value for each column: a time.Time, a time.Duration, a string, a []string, an
	// int64, true or an [event.State]. The zero time, a negative duration, "" and nil mean none.
	Rows func(context.Context, *ledger.Tx, Asked) ([][]any, error)
}

// Asked is what a report is about.
type Asked struct {
	query.Span
	Now      time.Time
	Every    time.Duration // depth: the length of a step, whole seconds; 0: a minute
	Later    time.Duration // backlog: how long after it was enqueued a job should have ended; 0: an hour
	Limit    int           // longest, costly: how many attempts; 0: ten
	By       string        // costly: one of query.LongestBy
	Outcomes []event.Kind  // failures: how attempts ended; none: failed and reclaimed
	Job      int64         // causes: the job's number; 0: all
}

// Reports are all of them, in the order of the help.
var Reports = []Report{
	{"taken", "which jobs were taken from a worker, and who got them next", true, true,
		[]string{"at", "job", "queue", "attempt", "worker", "reason", "next_worker", "next_claimed_at", "waited",
			"next_outcome"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Taken{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, func(t query.TakenJob) []any {
				outcome := ""
				if t.Next.Pos > 0 {
					outcome = outcomeOf(t.Next)
				}
				return []any{t.At, string(t.Job), t.Queue, int64(t.Attempt), t.Worker.Name, t.Reason,
					t.Next.Worker.Name, t.Next.ClaimedAt, t.Waited(), outcome}
			})
		}},
	{"silent", "which workers went silent without stopping, in order, and what they lost", false, true,
		[]string{"last_sign_of_life", "worker", "host", "pid", "boot", "lost", "held"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Silent{From: a.From, To: a.To, Worker: a.Worker}.Read(ctx, tx)
			return rowsOf(found, err, func(w query.SilentWorker) []any {
				return []any{w.SeenAt, w.Name, w.Host, int64(w.PID), w.Boot, w.Taken, w.Holds}
			})
		}},
	{"poison", "which jobs were taken from more than one worker process", true, false,
		[]string{"job", "queue", "taken", "processes", "workers", "last", "state_now"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Poison{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, func(j query.PoisonJob) []any {
				return []any{string(j.Job), j.Queue, j.Taken, j.Processes, j.Workers, j.Last, j.State}
			})
		}},
	{"failures", "how often each error code occurred, in how many jobs, from when to when", true, true,
		[]string{"code", "count", "jobs", "first", "last"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Failures{Span: a.Span, Outcomes: a.Outcomes}.Read(ctx, tx)
			return rowsOf(found.List, err, func(g *query.FailureGroup) []any {
				return []any{g.Code, g.Attempts, int64(len(g.Jobs)), g.First, g.Last}
			})
		}},
	{"longest", "which attempts lasted longest, of those that ended", true, true,
		[]string{"job", "attempt", "queue", "worker", "claimed_at", "lasted", "outcome", "after_max_runtime"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Longest{Span: a.Span, Limit: cmp.Or(a.Limit, 10)}.Read(ctx, tx)
			return rowsOf(found, err, func(a query.Attempt) []any {
				return []any{string(a.Job), int64(a.Attempt), a.Queue, a.Worker.Name, a.ClaimedAt, a.Lasted(),
					outcomeOf(a), afterMaxRuntime(a)}
			})
		}},
	{"costly", "which attempts used most: processor time, memory, or time", true, true,
		[]string{"job", "attempt", "queue", "worker", "claimed_at", "lasted", "cpu", "max_rss", "outcome"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			asked := query.Longest{Span: a.Span, Limit: cmp.Or(a.Limit, 10), By: cmp.Or(a.By, "cpu")}
			found, err := asked.Read(ctx, tx)
			return rowsOf(found, err, func(a query.Attempt) []any {
				return AttemptRow(a, []string{"job", "attempt", "queue", "worker", "claimed", "elapsed", "cpu",
					"max_rss", "state"}, "", a.EndedAt)
			})
		}},
	{"depth", "how many jobs of each queue were waiting and how many held, minute by minute", true, false,
		[]string{"minute", "queue", "queued", "held"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Depth{Span: a.Span, Step: a.Every}.Read(ctx, tx)
			return rowsOf(found, err, func(r query.DepthRow) []any {
				return []any{r.At, r.Queue, r.Queued(), r.Held}
			})
		}},
	{"waits", "how long jobs that were ready waited for a worker, by queue", true, false,
		[]string{"queue", "claims", "p50", "p99", "max"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Waits{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, WaitRow)
		}},
	{"causes", "how long jobs waited, and for what: other jobs, their time, a pause, limits, a worker", true,
		false, []string{"queue", "cause", "jobs", "waited", "longest", "no_worker"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Causes{Span: a.Span, Job: a.Job}.Read(ctx, tx)
			return rowsOf(found, err, func(c query.Caused) []any {
				return []any{c.Queue, c.Cause.String(), c.Jobs, c.Waited, c.Longest, c.None}
			})
		}},
	{"recovery", "how long jobs that were taken from a worker waited for their next claim, by queue", true, true,
		[]string{"queue", "claims", "p50", "p99", "max"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Recovery{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, WaitRow)
		}},
	{"backlog", "which jobs had not ended an hour after they were enqueued", true, false,
		[]string{"job", "queue", "enqueued", "state", "state_now"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Backlog{Span: a.Span, Later: a.Later, Now: a.Now}.Read(ctx, tx)
			return rowsOf(found, err, func(j query.LateJob) []any {
				return []any{string(j.Job), j.Queue, j.Enqueued, j.Then, j.Now}
			})
		}},
	{"acts", "what operators did: who, to what, how many jobs at a time, and why", true, false,
		[]string{"pos", "at", "by", "kind", "about", "count", "reason"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			acts, err := query.Acts{Span: a.Span, Limit: math.MaxInt}.Read(ctx, tx)
			slices.Reverse(acts.List)
			return rowsOf(acts.List, err, func(x query.Act) []any {
				return []any{x.Pos, x.At, x.Actor, x.Kind().String(), x.About(), int64(x.Count), x.Reason}
			})
		}},
	{"left", "which jobs left the ledger for its archive, by step and queue, and what was erased there", true,
		false, []string{"at", "what", "by", "queue", "jobs", "succeeded", "failed", "cancelled", "job"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Left{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, func(d query.Departure) []any {
				what := "archived"
				if d.Erased != "" {
					what = "erased"
				}
				return []any{d.At, what, d.Actor, d.Queue, d.Jobs, d.Succeeded, d.Failed, d.Cancelled,
					string(d.Erased)}
			})
		}},
	{"clocks", "which workers wrote by a clock that was behind, and by how much", false, true,
		[]string{"worker", "host", "pid", "behind", "events", "first", "last"},
		func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
			found, err := query.Clocks{Span: a.Span}.Read(ctx, tx)
			return rowsOf(found, err, func(c query.Clock) []any {
				return []any{c.Worker.Name, c.Worker.Host, int64(c.Worker.PID), c.Behind, c.Events, c.First, c.Last}
			})
		}},
}

// FailuresByCause is the report failures with a row for each cause, the fingerprint of which selects jobs.
var FailuresByCause = Report{"failures --cause", "", true, true,
	[]string{"failure", "queue", "error_code", "exit_code", "signal", "detail", "count", "of", "jobs",
		"last_failed", "first", "last"},
	func(ctx context.Context, tx *ledger.Tx, a Asked) ([][]any, error) {
		asked := query.Failures{Span: a.Span, Outcomes: a.Outcomes, By: query.ByCause, Jobs: true}
		found, err := asked.Read(ctx, tx)
		return rowsOf(found.List, err, func(g *query.FailureGroup) []any {
			exit := any(nil)
			if g.Exit.Code != nil {
				exit = int64(*g.Exit.Code)
			}
			return []any{g.ID, g.Queue, g.Code, exit, g.Exit.Signal, g.Detail, g.Attempts, g.Ended,
				int64(len(g.Jobs)), g.LastFailed, g.First, g.Last}
		})
	}}

// WaitRow is the row of the report waits for w.
func WaitRow(w query.Wait) []any { return []any{w.Queue, w.Claims, w.P50, w.P99, w.Max} }

// ReportNamed returns the report of this name.
func ReportNamed(name string) (Report, bool) {
	for _, r := range Reports {
		if r.Name == name {
			return r, true
		}
	}
	return Report{}, false
}

// ReportNames are the names of all reports, in the order of the help.
func ReportNames() (names []string) {
	for _, r := range Reports {
		names = append(names, r.Name)
	}
	return names
}

// Takes reports whether a flag, or the parameter of its name, means anything to the report.
func (r Report) Takes(flag string) bool {
	switch flag {
	case "queue":
		return r.ByQueue
	case "worker":
		return r.ByWorker
	}
	of := map[string]string{"after": "backlog", "every": "depth", "limit": "longest costly", "by": "costly",
		"outcome": "failures", "cause": "failures", "job": "causes"}[flag]
	return of == "" || slices.Contains(strings.Fields(of), r.Name)
}

func rowsOf[T any](found []T, err error, row func(T) []any) (rows [][]any, _ error) {
	for _, f := range found {
		rows = append(rows, row(f))
	}
	return rows, err
}
