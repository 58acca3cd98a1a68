package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

// quote is text from the ledger as Markdown shows it and nothing else: no link, no mention of somebody, no table.
func quote(text string) string {
	text = strings.NewReplacer("`", "'", "|", `\|`).Replace(strings.TrimSpace(render.Escape(text)))
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// reportTime is how the report gives a time: people in other places read it too.
func reportTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// write writes the report as Markdown.
func (f *facts) write(out io.Writer) error {
	w := &markdown{Writer: bufio.NewWriter(out)}
	w.line("# Incident of %s", f.within.From.UTC().Format("2006-01-02"))
	w.line("")
	w.line("From %s to %s, events %d to %d of %s. All times are UTC.", reportTime(f.within.From), reportTime(f.within.To), f.within.After+1, f.within.Until, quote(f.ledger))
	f.summary(w)
	f.timeline(w)
	f.lostWorkers(w)
	f.reclaimTable(w)
	f.refusedTable(w)
	f.failureTable(w)
	f.gaveUpTable(w)
	f.operatorTable(w)
	w.line("\n## Queue depth\n\n![jobs by minute](depth.svg)\n")
	w.table("queue", "most queued", "at", "most claimed or running", "at")
	for _, name := range slices.Sorted(maps.Keys(f.depth.peaks)) {
		p := f.depth.peaks[name]
		w.row(quote(name), fmt.Sprint(p.queued), reportTime(p.queuedAt), fmt.Sprint(p.held), reportTime(p.heldAt))
	}
	f.verdict(w)
	w.line("\n## Files\n")
	w.line("- `events.jsonl`: every event up to the end; `jobledger import events.jsonl --db incident.db` makes a ledger of it")
	w.line("- `attempts.csv`: a row for each claim that was live within this time")
	w.line("- `trace.json`: the same as lanes; open it at https://ui.perfetto.dev")
	w.line("- `manifest.json`: the SHA-256 of each file")
	return w.Flush()
}

// markdown writes lines; the first error comes with Flush.
type markdown struct{ *bufio.Writer }

func (w *markdown) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *markdown) table(columns ...string) {
	w.row(columns...)
	w.line("%s", strings.Repeat("|---", len(columns))+"|")
}

func (w *markdown) row(cells ...string) { w.line("| %s |", strings.Join(cells, " | ")) }

// rest says how many rows are left out.
func (w *markdown) rest(count int64, shown int, file string) {
	if more := count - int64(shown); more > 0 {
		w.line("\n… and %d more; see `%s`.", more, file)
	}
}

func (f *facts) summary(w *markdown) {
	a := f.activity
	w.line("\n| events | enqueued | claimed | succeeded | failed attempts | released | reclaimed | refused writes | cancelled | given up |")
	w.line("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	w.line("| %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |", f.events, a.Enqueued, a.Claimed, a.Succeeded, a.Failed, a.Released, a.Reclaimed, a.Refused, a.Cancelled, f.gaveUp.count)
}

func (f *facts) timeline(w *markdown) {
	w.line("\n## What happened\n")
	shown := 0
	for _, e := range f.entries {
		if e.failures && e.count < unusual {
			continue
		}
		shown++
		until := ""
		if e.last.After(e.first) {
			until = fmt.Sprintf(" (until %s)", e.last.UTC().Format("15:04:05.000Z"))
		}
		w.line("- %s%s: %s", reportTime(e.first), until, e.text(e.count))
	}
	if shown == 0 {
		w.line("Nothing but claims that came to an end by themselves.")
	}
	w.rest(f.more, 0, "events.jsonl")
}

func (f *facts) lostWorkers(w *markdown) {
	w.line("\n## Workers from which jobs were taken back\n")
	if len(f.order) == 0 {
		w.line("None.")
		return
	}
	w.table("worker", "host", "pid", "jobs", "last heartbeat", "first lease end", "detected", "after", "refused writes", "back at")
	for _, l := range f.order[:min(len(f.order), reportRows)] {
		w.row(quote(l.worker.Name), quote(l.worker.Host), strconv.Itoa(l.worker.PID), fmt.Sprint(l.jobs), reportTime(l.lastHeartbeat), reportTime(l.leaseEnd),
			reportTime(l.detected), render.Briefly(l.detected.Sub(l.leaseEnd)), fmt.Sprint(l.refused), reportTime(l.back))
	}
	w.rest(int64(len(f.order)), min(len(f.order), reportRows), "attempts.csv")
}

func (f *facts) reclaimTable(w *markdown) {
	w.line("\n## Reclaims\n")
	if f.reclaims.count == 0 {
		w.line("None.")
		return
	}
	w.table("job", "queue", "attempt", "worker", "last heartbeat", "lease end", "detected", "why", "next try")
	for _, r := range f.reclaims.first {
		next := "gave up"
		if !r.RetryAt.IsZero() {
			next = reportTime(r.RetryAt)
		}
		w.row(quote(string(r.Job)), quote(r.queue), strconv.Itoa(r.Attempt), quote(r.Worker.Name), reportTime(r.LastHeartbeat), reportTime(r.LeaseUntil),
			reportTime(r.At), quote(r.Reason), next)
	}
	w.rest(f.reclaims.count, len(f.reclaims.first), "attempts.csv")
}

func (f *facts) refusedTable(w *markdown) {
	w.line("\n## Refused writes\n")
	if f.refused.count == 0 {
		w.line("None.")
		return
	}
	w.table("at", "job", "attempt", "worker", "command", "why", "result offered")
	for _, e := range f.refused.first {
		b := e.Body.(*ledger.Refused)
		offered := ""
		if b.OfferedBytes > 0 || b.OfferedSHA256 != "" {
			offered = fmt.Sprintf("%s, SHA-256 %s", render.Count(b.OfferedBytes, "byte"), quote(render.OrNone(b.OfferedSHA256)))
		}
		w.row(reportTime(e.At), quote(string(e.Job)), strconv.Itoa(e.Attempt), quote(e.Worker.Name), quote(b.Command), quote(b.Why), offered)
	}
	w.rest(f.refused.count, len(f.refused.first), "events.jsonl")
}

func (f *facts) failureTable(w *markdown) {
	w.line("\n## Failures by code\n")
	if len(f.failures) == 0 {
		w.line("None.")
		return
	}
	groups := slices.SortedFunc(maps.Values(f.failures), func(a, b *failures) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.code, b.code))
	})
	w.table("code", "attempts", "jobs", "first", "last", "the last detail")
	for _, g := range groups[:min(len(groups), reportRows)] {
		jobs := strconv.Itoa(len(g.jobs))
		if len(g.jobs) == reportRows {
			jobs += " or more"
		}
		w.row(quote(g.code), fmt.Sprint(g.count), jobs, reportTime(g.first), reportTime(g.last), quote(render.Truncate(strings.TrimSpace(g.detail), 200)))
	}
	w.rest(int64(len(groups)), min(len(groups), reportRows), "attempts.csv")
}

func (f *facts) gaveUpTable(w *markdown) {
	if f.gaveUp.count == 0 {
		return
	}
	w.line("\n## Jobs given up\n")
	w.table("at", "job", "queue", "attempt", "worker", "code")
	for _, g := range f.gaveUp.first {
		w.row(reportTime(g.At), quote(string(g.Job)), quote(g.queue), strconv.Itoa(g.Attempt), quote(g.Worker.Name), quote(g.code))
	}
	w.rest(f.gaveUp.count, len(f.gaveUp.first), "attempts.csv")
}

func (f *facts) operatorTable(w *markdown) {
	w.line("\n## What operators did\n")
	n := 0
	for _, e := range f.entries {
		if e.byOperator {
			n++
			w.line("- %s: %s", reportTime(e.first), e.text(e.count))
		}
	}
	if n == 0 {
		w.line("Nothing.")
	}
}

func (f *facts) verdict(w *markdown) {
	w.line("\n## Is the ledger sound?\n")
	v := f.verified
	if len(v.Findings) == 0 {
		w.line("Yes: `jobledger verify` checked %s of %s when this report was made; the tables equal the fold of the events.", render.Count(v.Events, "event"), render.Count(v.Jobs, "job"))
		return
	}
	w.line("No: `jobledger verify` has %s.\n", render.Count(int64(len(v.Findings)), "finding"))
	w.table("code", "event", "job", "field", "finding")
	for _, x := range v.Findings[:min(len(v.Findings), reportRows)] {
		w.row(x.Code, fmt.Sprint(x.Pos), quote(string(x.Job)), quote(x.Field), quote(x.Detail))
	}
	w.rest(int64(len(v.Findings)), min(len(v.Findings), reportRows), "jobledger verify")
}
