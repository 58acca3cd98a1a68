package incident

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/audit"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// WriteMarkdown writes r as Markdown. It shows the chart as depth.svg and describes the files that 'jobledger
// incident' puts next to it.
func (r *Report) WriteMarkdown(out io.Writer) error {
	w := &markdown{Writer: bufio.NewWriter(out)}
	w.line("# Incident of %s", r.Window.From.UTC().Format("2006-01-02"))
	w.line("")
	w.line("From %s to %s, events %d to %d of %s. All times are UTC.",
		formatTime(r.Window.From), formatTime(r.Window.To), r.Window.After+1, r.Window.Until, quote(r.Ledger))
	r.summary(w)
	r.timeline(w)
	r.workers(w)
	r.attempts(w)
	r.operators(w)
	r.depth(w)
	r.verdict(w)
	w.line("\n## Files\n")
	if r.WindowOnly {
		w.line("- `events.jsonl`: the events of this time")
	} else {
		w.line("- `events.jsonl`: every event up to the end; " +
			"`jobledger import events.jsonl --db incident.db` makes a ledger of it")
	}
	w.line("- `attempts.csv`: a row for each claim that was live within this time")
	w.line("- `trace.json`: the same as lanes; open it at https://ui.perfetto.dev")
	w.line("- `manifest.json`: the SHA-256 of each file")
	return w.Flush()
}

// quote formats text from the ledger so that Markdown shows it as it is: no link, no mention of a user, no
// table.
func quote(text string) string {
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(strings.TrimSpace(words.Escape(text)))
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// formatTime formats t in UTC, because people in several time zones read a report. It is empty for the zero
// time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// markdown writes lines. The first error stays in it, for Flush.
type markdown struct{ *bufio.Writer }

func (w *markdown) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *markdown) row(cells ...any) {
	for _, c := range cells {
		if t, isTime := c.(time.Time); isTime {
			c = formatTime(t)
		}
		fmt.Fprintf(w, "| %v ", c)
	}
	w.line("|")
}

// table begins a table.
func (w *markdown) table(columns string) {
	w.line("| %s |", strings.ReplaceAll(columns, ",", " |"))
	w.line("%s", strings.Repeat("|---", strings.Count(columns, ",")+1)+"|")
}

// section writes a table of the first rows, and which file has the rest of them.
func section[T any](w *markdown, title, columns string, rows []T, file string, cells func(T) []any) {
	if title != "" {
		w.line("\n## %s\n", title)
	}
	if len(rows) == 0 {
		w.line("None.")
		return
	}
	w.table(columns)
	for _, row := range rows[:min(len(rows), maxRows)] {
		w.row(cells(row)...)
	}
	w.rest(len(rows)-maxRows, file)
}

// rest says how many are left out, and which file has them.
func (w *markdown) rest(more int, file string) {
	if more > 0 {
		w.line("\n… and %d more; see `%s`.", more, file)
	}
}

func (r *Report) summary(w *markdown) {
	w.line(
		"\n| events | enqueued | claimed | succeeded | failed attempts | released | reclaimed | refused writes " +
			"| cancelled | given up |")
	w.line("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	a := r.Activity
	w.row(r.Events, a.Enqueued, a.Claimed, a.Succeeded, a.Failed, a.Released, a.Reclaimed, a.Refused,
		a.Cancelled, len(r.GivenUp))
}

// someFailures is how many failures of one kind in a row the timeline mentions. Some attempts fail on good
// nights too.
const someFailures = 5

func (r *Report) timeline(w *markdown) {
	w.line("\n## What happened\n")
	for _, q := range r.Paused {
		w.line("- since %s, before this time: the queue %s was paused by %s: %s", formatTime(q.Since),
			quote(q.Name), quote(q.Actor), cmp.Or(quote(q.Reason), "no reason given"))
	}
	shown := len(r.Paused)
	for _, e := range r.Timeline {
		if e.Failures && e.Count < someFailures {
			continue
		}
		shown++
		until := ""
		if e.Last.After(e.First) {
			until = fmt.Sprintf(" (until %s)", e.Last.UTC().Format("15:04:05.000Z"))
		}
		w.line("- %s%s: %s", formatTime(e.First), until, e.Text)
	}
	if shown == 0 {
		w.line("Nothing but claims that came to an end normally.")
	}
	w.rest(r.Omitted, "events.jsonl")
}

// workers lists those that lost jobs, and those that fell silent and lost none.
func (r *Report) workers(w *markdown) {
	section(w, "Workers from which jobs were taken back", "worker, host, pid, jobs, last heartbeat, "+
		"first lease end, detected, after, refused writes, back at", r.LostWorkers, "attempts.csv",
		func(l *LostWorker) []any {
			detected := l.Jobs[0].At
			return []any{quote(l.Worker.Name), quote(l.Worker.Host), l.Worker.PID, len(l.Jobs), l.LastHeartbeat,
				l.LeaseEnd, detected, words.Briefly(detected.Sub(l.LeaseEnd)), l.Refused, l.Back}
		})
	if len(r.Silent) > 0 {
		section(w, "Other workers that fell silent without having stopped",
			"worker, host, pid, jobs, last sign of life, replaced at", r.Silent, "events.jsonl",
			func(l status.LostWorker) []any {
				return []any{quote(l.Name), quote(l.Host), l.PID, len(l.Jobs), l.SeenAt, l.Replaced}
			})
	}
}

// attempts lists those that ended badly.
func (r *Report) attempts(w *markdown) {
	section(w, "Reclaims", "job, queue, attempt, worker, last heartbeat, lease end, detected, why, next try",
		r.Taken, "attempts.csv", func(t query.TakenJob) []any {
			return []any{quote(string(t.Job)), quote(t.Queue), t.Attempt, quote(t.Worker.Name), t.LastHeartbeat,
				t.LeaseUntil, t.At, quote(t.Reason), cmp.Or(formatTime(t.RetryAt), "none")}
		})
	section(w, "Refused writes", "at, job, attempt, worker, command, why, result offered", r.Refused,
		"events.jsonl", func(e event.Event) []any {
			b, offered := e.Body.(*event.Refused), ""
			if b.OfferedBytes > 0 || b.OfferedSHA256 != "" {
				offered = fmt.Sprintf("%s, SHA-256 %s",
					words.Count(b.OfferedBytes, "byte"), quote(words.OrNone(b.OfferedSHA256)))
			}
			return []any{e.At, quote(string(e.Job)), e.Attempt, quote(e.Worker.Name), quote(b.Command),
				quote(b.Why), offered}
		})
	section(w, "Failures by cause", "queue, cause, attempts, jobs, first, last, the last detail",
		r.Failures.List, "attempts.csv", func(g *query.FailureGroup) []any {
			return []any{quote(g.Queue), quote(words.FailureText(g.Code, g.Exit)), g.Attempts, len(g.Jobs), g.First,
				g.Last, quote(words.Truncate(strings.TrimSpace(g.Example), 200))}
		})
	if len(r.GivenUp) > 0 {
		section(w, "Jobs given up", "at, job, queue, attempt, worker, code", r.GivenUp, "attempts.csv",
			func(f query.Failure) []any {
				return []any{f.At, quote(string(f.Job)), quote(f.Queue), f.Attempt, quote(f.Worker.Name),
					quote(f.Code)}
			})
	}
}

func (r *Report) operators(w *markdown) {
	w.line("\n## What operators did\n")
	n := 0
	for _, e := range r.Timeline {
		if e.ByOperator {
			n++
			w.line("- %s: %s", formatTime(e.First), e.Text)
		}
	}
	if n == 0 {
		w.line("Nothing.")
	}
}

func (r *Report) depth(w *markdown) {
	section(w, "Queue depth\n\n![jobs by minute](depth.svg)",
		"queue, most queued, at, most claimed or running, at", r.Depth.Peaks, "", func(p query.Peak) []any {
			return []any{quote(p.Queue), p.Queued, p.QueuedAt, p.Held, p.HeldAt}
		})
}

func (r *Report) verdict(w *markdown) {
	w.line("\n## Is the ledger sound?\n")
	v := r.Verified
	if len(v.Findings) == 0 {
		w.line("Yes: `jobledger verify` checked %s of %s when this report was made, events %d to %d; "+
			"the rows of these jobs equal the fold of their events.", words.Count(v.Events, "event"),
			words.Count(v.Jobs, "job"), v.Since+1, v.Until)
		w.line("This report did not verify other events and jobs; `jobledger verify` checks the whole ledger.")
		return
	}
	w.line("No: events %d to %d and their jobs have %s.\n", r.Window.After+1, r.Window.Until,
		words.Count(int64(len(v.Findings)), "finding"))
	section(w, "", "code, event, job, field, finding", v.Findings, "jobledger verify",
		func(x audit.Finding) []any {
			return []any{x.Code, x.Pos, quote(string(x.Job)), quote(x.Field), quote(x.Detail)}
		})
}
