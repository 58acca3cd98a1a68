package incident

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger/event"
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
	r.lostWorkers(w)
	r.silentWorkers(w)
	r.reclaims(w)
	r.refused(w)
	r.failures(w)
	r.givenUp(w)
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
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(strings.TrimSpace(render.Escape(text)))
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

// table begins a table.
func (w *markdown) table(columns ...string) {
	w.row(columns...)
	w.line("%s", strings.Repeat("|---", len(columns))+"|")
}

func (w *markdown) row(cells ...string) { w.line("| %s |", strings.Join(cells, " | ")) }

// rest says how many of total rows are left out, and which file has them.
func (w *markdown) rest(total int64, shown int, file string) {
	if more := total - int64(shown); more > 0 {
		w.line("\n… and %d more; see `%s`.", more, file)
	}
}

func (r *Report) summary(w *markdown) {
	w.line(
		"\n| events | enqueued | claimed | succeeded | failed attempts | released | reclaimed | refused writes " +
			"| cancelled | given up |")
	w.line("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	a := r.Activity
	w.line("| %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |", r.Events, a.Enqueued, a.Claimed, a.Succeeded,
		a.Failed, a.Released, a.Reclaimed, a.Refused, a.Cancelled, r.GivenUp.Total)
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
	w.rest(r.Omitted, 0, "events.jsonl")
}

func (r *Report) lostWorkers(w *markdown) {
	w.line("\n## Workers from which jobs were taken back\n")
	if len(r.LostWorkers) == 0 {
		w.line("None.")
		return
	}
	w.table("worker", "host", "pid", "jobs", "last heartbeat", "first lease end", "detected", "after",
		"refused writes", "back at")
	shown := r.LostWorkers[:min(len(r.LostWorkers), maxRows)]
	for _, l := range shown {
		w.row(quote(l.Worker.Name), quote(l.Worker.Host), strconv.Itoa(l.Worker.PID), fmt.Sprint(l.Jobs),
			formatTime(l.LastHeartbeat), formatTime(l.LeaseEnd), formatTime(l.Detected),
			render.Briefly(l.Detected.Sub(l.LeaseEnd)), fmt.Sprint(l.Refused), formatTime(l.Back))
	}
	w.rest(int64(len(r.LostWorkers)), len(shown), "attempts.csv")
}

// silentWorkers lists the other lost workers: no job was taken back from them.
func (r *Report) silentWorkers(w *markdown) {
	if len(r.Silent) == 0 {
		return
	}
	w.line("\n## Other workers that fell silent without having stopped\n")
	w.table("worker", "host", "pid", "jobs", "last sign of life", "replaced at")
	shown := r.Silent[:min(len(r.Silent), maxRows)]
	for _, l := range shown {
		w.row(quote(l.Name), quote(l.Host), strconv.Itoa(l.PID), strconv.Itoa(len(l.Jobs)),
			formatTime(l.SeenAt), formatTime(l.Replaced))
	}
	w.rest(int64(len(r.Silent)), len(shown), "events.jsonl")
}

func (r *Report) reclaims(w *markdown) {
	w.line("\n## Reclaims\n")
	if r.Reclaims.Total == 0 {
		w.line("None.")
		return
	}
	w.table("job", "queue", "attempt", "worker", "last heartbeat", "lease end", "detected", "why", "next try")
	for _, x := range r.Reclaims.Rows {
		next := "none"
		if !x.RetryAt.IsZero() {
			next = formatTime(x.RetryAt)
		}
		w.row(quote(string(x.Job)), quote(x.Queue), strconv.Itoa(x.Attempt), quote(x.Worker.Name),
			formatTime(x.LastHeartbeat), formatTime(x.LeaseUntil), formatTime(x.At), quote(x.Reason), next)
	}
	w.rest(r.Reclaims.Total, len(r.Reclaims.Rows), "attempts.csv")
}

func (r *Report) refused(w *markdown) {
	w.line("\n## Refused writes\n")
	if r.Refused.Total == 0 {
		w.line("None.")
		return
	}
	w.table("at", "job", "attempt", "worker", "command", "why", "result offered")
	for _, e := range r.Refused.Rows {
		b := e.Body.(*event.Refused)
		offered := ""
		if b.OfferedBytes > 0 || b.OfferedSHA256 != "" {
			offered = fmt.Sprintf("%s, SHA-256 %s",
				render.Count(b.OfferedBytes, "byte"), quote(render.OrNone(b.OfferedSHA256)))
		}
		w.row(formatTime(e.At), quote(string(e.Job)), strconv.Itoa(e.Attempt), quote(e.Worker.Name),
			quote(b.Command), quote(b.Why), offered)
	}
	w.rest(r.Refused.Total, len(r.Refused.Rows), "events.jsonl")
}

func (r *Report) failures(w *markdown) {
	w.line("\n## Failures by code\n")
	if len(r.Failures) == 0 {
		w.line("None.")
		return
	}
	w.table("code", "attempts", "jobs", "first", "last", "the last detail")
	shown := r.Failures[:min(len(r.Failures), maxRows)]
	for _, g := range shown {
		w.row(quote(g.Code), fmt.Sprint(g.Attempts), strconv.Itoa(len(g.Jobs)), formatTime(g.First),
			formatTime(g.Last), quote(render.Truncate(strings.TrimSpace(g.Example), 200)))
	}
	w.rest(int64(len(r.Failures)), len(shown), "attempts.csv")
}

func (r *Report) givenUp(w *markdown) {
	if r.GivenUp.Total == 0 {
		return
	}
	w.line("\n## Jobs given up\n")
	w.table("at", "job", "queue", "attempt", "worker", "code")
	for _, g := range r.GivenUp.Rows {
		w.row(formatTime(g.At), quote(string(g.Job)), quote(g.Queue), strconv.Itoa(g.Attempt), quote(g.Worker.Name),
			quote(g.Code))
	}
	w.rest(r.GivenUp.Total, len(r.GivenUp.Rows), "attempts.csv")
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
	w.line("\n## Queue depth\n\n![jobs by minute](depth.svg)\n")
	w.table("queue", "most queued", "at", "most claimed or running", "at")
	for _, p := range r.Depth.Peaks {
		w.row(quote(p.Queue), fmt.Sprint(p.Queued), formatTime(p.QueuedAt), fmt.Sprint(p.Held),
			formatTime(p.HeldAt))
	}
}

func (r *Report) verdict(w *markdown) {
	w.line("\n## Is the ledger sound?\n")
	v := r.Verified
	if len(v.Findings) == 0 {
		w.line("Yes: `jobledger verify` checked %s of %s when this report was made, events %d to %d; "+
			"the rows of these jobs equal the fold of their events.", render.Count(v.Events, "event"),
			render.Count(v.Jobs, "job"), v.Since+1, v.Until)
		w.line("This report did not verify other events and jobs; `jobledger verify` checks the whole ledger.")
		return
	}
	w.line("No: events %d to %d and their jobs have %s.\n", r.Window.After+1, r.Window.Until,
		render.Count(int64(len(v.Findings)), "finding"))
	w.table("code", "event", "job", "field", "finding")
	shown := v.Findings[:min(len(v.Findings), maxRows)]
	for _, x := range shown {
		w.row(x.Code, fmt.Sprint(x.Pos), quote(string(x.Job)), quote(x.Field), quote(x.Detail))
	}
	w.rest(int64(len(v.Findings)), len(shown), "jobledger verify")
}
