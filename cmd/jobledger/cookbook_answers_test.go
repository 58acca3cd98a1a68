package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// answers checks, for each question of the cookbook, that its answer contains what follows from the lines of
// the export.
var answers = map[string]func(n *night, a *answer){
	"Which jobs did bravo-render own between 01:00 and 01:20, and what became of each?": func(
		n *night, a *answer,
	) {
		var jobs []string
		for _, h := range n.holds {
			if h.worker == "bravo-render" && !h.from.After(clock("01:20:00")) && !h.end.Before(clock("01:00:00")) {
				jobs = append(jobs, h.job)
				a.line(h.job, h.from.Format("15:04:05.000"), h.outcome)
			}
		}
		a.jobs(n, jobs)
	},
	"Who owned this job at 01:05:57? (its lease ended two seconds before)": func(n *night, a *answer) {
		job := n.one(a.t, "01KKQGAZ43")
		for _, h := range n.holds {
			if h.job == job && !h.from.After(clock("01:05:57")) && h.end.After(clock("01:05:57")) {
				a.line("owner", h.worker)
				a.line("attempt", fmt.Sprint(h.attempt))
				a.line("boot", h.boot)
				a.line("until", h.end.Format("15:04:05.000"), h.outcome)
			}
		}
		a.rows("owner", 1)
	},
	"What was its state at that moment, and what is it now?": func(n *night, a *answer) {
		job := n.one(a.t, "01KKQGAZ43")
		a.line("state   ", n.stateAt(job, clock("01:05:57")))
		a.line("state now", n.stateAt(job, morning))
	},
	"What happened to it, from the first event to the last?": func(n *night, a *answer) {
		job := n.one(a.t, "01KKQGAZ43")
		// some of these are omitted
		for _, d := range n.which(func(d deed) bool { return d.Job == job && d.Kind != "heartbeat" }) {
			kind := d.Kind
			if kind == "refused" {
				kind = "REFUSED"
			}
			a.line(d.At.Format("15:04:05.000"), kind)
		}
	},
	"What was running, on any host, when the power failed?": func(n *night, a *answer) {
		a.jobs(n, n.jobsWhere(func(job string, _ deed) bool {
			state := n.stateAt(job, clock("00:17:00"))
			return state == "claimed" || state == "running"
		}))
	},
	"What was host charlie running when it went down?": func(n *night, a *answer) {
		var jobs []string
		for _, h := range n.holds {
			if h.host == "charlie" && h.from.Before(clock("00:17:01")) && h.end.After(clock("00:17:01")) {
				jobs = append(jobs, h.job)
				a.line(h.job, fmt.Sprintf("|%d|%s|%s|%s|%s", h.attempt, h.worker, stamp(h.from), stamp(h.beat),
					h.outcome))
			}
		}
		a.jobs(n, jobs)
	},
	"Which workers went silent without stopping, in what order, and how many jobs did they lose?": func(
		n *night, a *answer,
	) {
		var want string
		for _, boot := range byLast(n) {
			last, d, lost := n.lastSign(boot)
			want += fmt.Sprintf("%s|%s|%s|%d|%d\n", stamp(last), d.Worker, d.Data.Host, d.Data.PID, lost)
		}
		a.is(want)
	},
	"Which worker processes ran that night, and how did each end?": func(n *night, a *answer) {
		started := n.kind("worker_started")
		a.rows(" on ", len(started))
		a.rows("  silent  ", len(n.silent))
		for _, d := range started {
			end := "stopped"
			if slices.Contains(n.silent, d.Data.Boot) {
				end = "silent"
			}
			a.line(d.Worker+" ", end, fmt.Sprintf(" %d on %s", d.Data.PID, d.Data.Host))
		}
	},
	"Which jobs were taken from a worker, when, from whom, and who got them next?": func(n *night, a *answer) {
		taken := n.kind("reclaimed")
		a.jobs(n, jobsOf(taken))
		for _, d := range taken {
			next := "||"
			if h := n.next(d.Job, d.Attempt); h != nil {
				next = h.worker + "|" + stamp(h.from) + "|" + h.outcome
			}
			a.line(fmt.Sprintf("%s|%s|%s|%s\n", stamp(d.At), d.Job, d.Worker, next))
		}
	},
	"What was the last heartbeat before each reclaim, and how late was the reclaim?": func(n *night, a *answer) {
		taken := n.kind("reclaimed")
		a.jobs(n, jobsOf(taken))
		for _, d := range taken {
			a.line(fmt.Sprint(d.Pos), d.Job, "last heartbeat "+d.Data.LastHeartbeat.Format("15:04:05"),
				"lease ended at "+d.Data.LeaseUntil.Format("15:04:05"))
			for _, h := range n.holds {
				if h.job == d.Job && h.attempt == d.Attempt && !latest(h.from, h.beat).Equal(d.Data.LastHeartbeat) {
					a.t.Errorf("%s: the reclaim says %s, the events %s", d.Job, d.Data.LastHeartbeat, latest(h.from, h.beat))
				}
			}
		}
	},
	"How long did a lost job wait, from the end of its lease to the next claim, p50 and p99?": func(
		n *night, a *answer,
	) {
		var gaps []time.Duration
		for _, d := range n.kind("reclaimed") {
			if h := n.next(d.Job, d.Attempt); h != nil {
				gaps = append(gaps, h.from.Sub(d.Data.LeaseUntil))
			}
		}
		slices.Sort(gaps)
		p := func(q float64) string { return seconds(gaps[int(math.Ceil(q*float64(len(gaps))))-1], 1) }
		a.is(fmt.Sprintf("%d|p50 %s|p99 %s\n", len(gaps), p(0.5), p(0.99)))
	},
	"Which late writes were refused, and what did they offer?": func(n *night, a *answer) {
		refused := n.kind("refused")
		a.jobs(n, jobsOf(refused))
		for _, d := range refused {
			a.line(d.Job, d.Data.Command+" by "+d.Actor, d.Data.Offered)
		}
	},
	"Which jobs did two workers run at once?": func(n *night, a *answer) {
		var jobs []string
		for _, d := range n.kind("refused") {
			for _, h := range n.holds {
				if n.next(d.Job, d.Attempt) != nil && h.job == d.Job && h.from.Before(d.At) {
					jobs = append(jobs, h.job)
					a.line(h.job, h.worker, h.outcome)
				}
			}
		}
		a.jobs(n, jobs)
	},
	"Which job has killed two workers?": func(n *night, a *answer) {
		var want string
		for _, job := range n.jobsWhere(func(string, deed) bool { return true }) {
			var from []string
			for _, d := range n.byJob[job] {
				if d.Kind == "reclaimed" && !slices.Contains(from, d.Worker) {
					from = append(from, d.Worker)
				}
			}
			if len(from) > 1 {
				want += job + "|" + strings.Join(from, " ") + "\n"
			}
		}
		a.is(want)
	},
	"Was a clock wrong? (a clock that was set back makes leases seem shorter)": func(n *night, a *answer) {
		leases := n.which(func(d deed) bool { return d.Kind == "claimed" || d.Kind == "heartbeat" })
		for _, d := range leases {
			if d.Data.LeaseUntil.Sub(d.At) != time.Minute {
				a.t.Errorf("pos %d: a lease of %s", d.Pos, d.Data.LeaseUntil.Sub(d.At))
			}
		}
		a.is(fmt.Sprintf("60s|%d|%s|%s\n", len(leases), stamp(leases[0].At), stamp(leases[len(leases)-1].At)))
	},
	"How deep were the queues at two o'clock?": func(n *night, a *answer) {
		for _, queue := range []string{"mail", "render"} {
			depth := n.depth(queue, clock("02:00:00"))
			fields := strings.Fields(a.with(queue + " ")[0])
			ready, later := fields[1], fields[3]
			got := fmt.Sprint(ready, "+", later, " ", strings.Join(fields[4:], " "))
			var waits int
			for _, job := range n.jobsWhere(func(job string, _ deed) bool { return n.queue[job] == queue }) {
				if n.stateAt(job, clock("02:00:00")) == "queued" &&
					n.notBefore(job, clock("02:00:00")).After(clock("02:00:00")) {
					waits++
				}
			}
			want := fmt.Sprint(depth["queued"]-waits, "+", waits, " ", depth["claimed"], " ", depth["running"], " ",
				depth["succeeded"], " ", depth["failed"], " ", depth["cancelled"])
			if got != want {
				a.t.Errorf("%s: got %s, want %s", queue, got, want)
			}
		}
	},
	"And by the minute: how many jobs of mail were waiting, and how many held?": func(n *night, a *answer) {
		var want string
		for minute := clock("01:45:00"); !minute.After(clock("02:15:00")); minute = minute.Add(time.Minute) {
			end := minute.Add(time.Minute - time.Microsecond)
			if len(n.which(func(d deed) bool {
				return d.Seq > 0 && n.queue[d.Job] == "mail" && !d.At.Before(minute) && !d.At.After(end)
			})) > 0 {
				depth := n.depth("mail", end)
				want += fmt.Sprintf("%s|%d|%d\n", minute.Format("2006-01-02T15:04"), depth["queued"],
					depth["claimed"]+depth["running"])
			}
		}
		a.is(want)
	},
	"Which queues were paused at two o'clock, since when, by whom and why?": func(
		n *night, a *answer,
	) {
		paused := n.kind("queue_paused")[0]
		if !paused.At.Before(clock("02:00:00")) {
			a.t.Errorf("it was paused at %s", paused.At)
		}
		a.line("mail", "paused", paused.At.Format("2006-01-02 15:04:05.000"), paused.Actor, paused.Data.Reason)
	},
	"How long did this job wait each time, after which event, and until when was it not ready?": func(
		n *night, a *answer,
	) {
		var want string
		steps := n.byJob[n.one(a.t, "01KKQJVTX2")]
		for i, d := range steps {
			if d.To != "queued" {
				continue
			}
			notBefore := ""
			if at := latest(d.Data.RetryAt, d.Data.RunAt); !at.IsZero() {
				notBefore = stamp(at)
			}
			want += fmt.Sprintf("%s|%s|%s|%s\n", stamp(d.At), d.Kind, notBefore, seconds(steps[i+1].At.Sub(d.At), 0))
		}
		a.is(want)
	},
	"How long did this job wait in all, and for what?": func(n *night, a *answer) {
		var schedule, worker time.Duration
		steps := n.byJob[n.one(a.t, "01KKQJVTX2")]
		for i, d := range steps {
			if d.To == "queued" {
				ready := latest(d.At, latest(d.Data.RetryAt, d.Data.RunAt))
				schedule, worker = schedule+ready.Sub(d.At), worker+steps[i+1].At.Sub(ready)
			}
		}
		a.line("mail", "schedule", " 1 ", seconds(schedule, 1))
		a.line("mail", "worker", " 1 ", seconds(worker, 1))
		a.rows("mail", 2)
	},
	"For what did the jobs of mail wait while it was paused?": func(n *night, a *answer) {
		var paused time.Duration
		begin, end, count := n.kind("queue_paused")[0].At, n.kind("queue_resumed")[0].At, 0
		if until := clock("02:10:00"); until.Before(end) { // to the end of the window
			end = until
		}
		for job, steps := range n.byJob {
			var waited time.Duration
			for i, d := range steps {
				if n.queue[job] != "mail" || d.To != "queued" {
					continue
				}
				until := end
				if i+1 < len(steps) && steps[i+1].At.Before(end) {
					until = steps[i+1].At
				}
				waited += max(0, until.Sub(latest(begin, latest(d.At, latest(d.Data.RetryAt, d.Data.RunAt)))))
			}
			if paused += waited; waited > 0 {
				count++
			}
		}
		a.line("mail", "paused", fmt.Sprintf(" %d ", count), seconds(paused, 1))
	},
	"Which lost jobs waited longest for their next claim, by queue?": func(n *night, a *answer) {
		gaps := make(map[string][]time.Duration)
		for _, d := range n.kind("reclaimed") {
			if h := n.next(d.Job, d.Attempt); h != nil {
				gaps[n.queue[d.Job]] = append(gaps[n.queue[d.Job]], h.from.Sub(d.Data.LeaseUntil))
			}
		}
		for queue, all := range gaps {
			a.line(queue, fmt.Sprint(len(all)), seconds(slices.Max(all), 1))
		}
		a.rows("s", len(gaps))
	},
	"Why is this job not running now?": func(n *night, a *answer) {
		job := n.one(a.t, "01KKQTCXRP")
		steps := n.byJob[job]
		last := steps[len(steps)-1]
		if last.To != "queued" || last.Kind != "released" {
			a.t.Errorf("it ends with %s, %s", last.Kind, last.To)
		}
		a.line(job+" is queued in mail", last.Worker+" gave it back", last.Data.Reason,
			"No worker is known to be running")
	},
	"Give me the whole ledger as of two o'clock, in a file.": func(n *night, a *answer) {
		until := n.which(func(d deed) bool { return !d.At.After(clock("02:00:00")) })
		a.line("at-two.db", fmt.Sprintf("%d events", len(until)))
		listed := &answer{t: a.t, out: asked(a.t, "list", "--limit", "0", "--state", "queued", "--db", "at-two.db")}
		listed.jobs(n, n.jobsWhere(func(job string, _ deed) bool {
			return n.stateAt(job, clock("02:00:00")) == "queued"
		}))
	},
	"Why was this job not running then?": func(n *night, a *answer) {
		paused := n.kind("queue_paused")[0]
		if state := n.stateAt(n.one(a.t, "01KKQKERCK"), clock("02:00:00")); state != "queued" ||
			paused.At.After(clock("02:00:00")) {
			a.t.Errorf("it was %s", state)
		}
		a.line("paused", paused.Actor, paused.Data.Reason)
	},
	"The same of the copy, which answers as of its own moment.": func(_ *night, a *answer) {
		then := asked(a.t, "why", "01KKQKERCK", "--as-of", "2026-03-15T02:00Z")
		a.is(strings.Replace(then, " Now it is succeeded.", "", 1))
	},
	"What was enqueued between 01:00 and 04:01, and had not ended an hour later?": func(n *night, a *answer) {
		a.jobs(n, n.jobsWhere(func(job string, d deed) bool {
			state := n.stateAt(job, d.At.Add(time.Hour))
			return within(d.At, "01:00:00", "04:01:00") && (state == "queued" || state == "claimed" ||
				state == "running")
		}))
	},
	"How often did each error code occur, in how many jobs, from when to when?": func(n *night, a *answer) {
		codes := gather(n.which(func(d deed) bool { return d.Kind == "failed" || d.Kind == "reclaimed" }),
			func(d deed) string {
				if d.Kind == "failed" {
					return d.Data.Code
				}
				return d.Data.Reason
			})
		for _, g := range codes {
			a.line(fmt.Sprintf("%s|%d|%d|%s|%s\n", g.name, g.count, len(g.jobs), stamp(g.first), stamp(g.last)))
		}
		a.rows("|", len(codes))
	},
	"Which jobs failed for good, and are still failed?": func(n *night, a *answer) {
		a.jobs(n, n.jobsWhere(func(job string, _ deed) bool { return n.stateAt(job, morning) == "failed" }))
	},
	"Why does this job, which killed its workers, no longer run, and can it be retried?": func(
		n *night, a *answer,
	) {
		job := n.one(a.t, "01KKQN8E4Q")
		last := n.byJob[job][len(n.byJob[job])-1]
		a.line(job+" "+last.To+" for good", "taken from "+last.Worker, "its lease had run out")
		if erased := jobsOf(n.kind("erased")); slices.Contains(erased, job) ==
			strings.Contains(a.out, "jobledger retry") {
			a.t.Errorf("%q were erased, and the answer is %s", erased, a.out)
		}
	},
	"Which retries did the deploy cause? (released is not a failure: it uses up no attempt)": func(
		n *night, a *answer,
	) {
		a.jobs(n, jobsOf(n.which(func(d deed) bool {
			return d.Kind == "released" && d.Data.Reason == "the worker is stopped" &&
				within(d.At, "23:00:00", "23:05:00")
		})))
	},
	"How did the deploy go, process by process and version by version?": func(n *night, a *answer) {
		moves := n.which(func(d deed) bool {
			return strings.HasPrefix(d.Kind, "worker_") && within(d.At, "23:00:00", "23:05:00")
		})
		a.rows(" worker_", len(moves))
		for _, d := range moves {
			a.line(fmt.Sprint(d.Pos), d.Kind, d.Worker, d.Data.Version)
		}
	},
	"Which attempts lasted longest?": func(n *night, a *answer) {
		ended := slices.DeleteFunc(slices.Clone(n.holds), func(h *hold) bool { return h.end.IsZero() })
		slices.SortStableFunc(ended, func(x, y *hold) int { return int(y.end.Sub(y.from) - x.end.Sub(x.from)) })
		a.rows("|", 5)
		for i, line := range slices.Collect(strings.Lines(a.out)) {
			if want := seconds(ended[i].end.Sub(ended[i].from), 1); !strings.HasSuffix(line, "|"+want+"\n") {
				a.t.Errorf("%d: got %s, want %s", i, line, want)
			}
		}
		a.line(ended[0].job, ended[0].worker, ended[0].outcome)
	},
	"What did the operator do that night, in order?": func(n *night, a *answer) {
		did := n.which(func(d deed) bool { return d.Actor == "cli:ada@desk" })
		lines := a.with("cli:ada@desk")
		if len(lines) != len(did) {
			a.t.Fatalf("%d lines, want %d", len(lines), len(did))
		}
		for i, d := range did {
			if !strings.Contains(lines[i], d.Kind) || !strings.Contains(lines[i], d.Job) ||
				!strings.Contains(lines[i], fmt.Sprint(d.Pos)) {
				a.t.Errorf("%d: got %s, want %s of %s", i, lines[i], d.Kind, d.Job)
			}
		}
	},
	"Who cancelled, retried, paused or erased, from where (user@host), how many and why?": func(
		n *night, a *answer,
	) {
		var want string
		for _, g := range gather(n.which(func(d deed) bool {
			return slices.Contains([]string{"cancelled", "retried", "rescheduled", "queue_paused", "queue_resumed",
				"erased"}, d.Kind)
		}), func(d deed) string { return d.Kind + "|%d|" + d.Actor + "|" + d.Data.Reason }) {
			want += stamp(g.first) + "|" + fmt.Sprintf(g.name, g.count) + "\n"
		}
		a.is(want)
	},
	"Did this invoice go out? (by its key)": func(n *night, a *answer) {
		jobs := n.jobsWhere(func(_ string, d deed) bool { return d.Data.Key == "invoice-73192" })
		a.jobs(n, jobs)
		a.line(jobs[0], n.stateAt(jobs[0], morning))
	},
	"Did customer 17's mail run on Sunday? (by its tag)": func(n *night, a *answer) {
		a.jobs(n, n.jobsWhere(func(job string, d deed) bool {
			last := n.byJob[job][len(n.byJob[job])-1]
			return d.Data.Queue == "mail" && d.Data.Tags["customer"] == "17" && last.At.Day() == 15 &&
				slices.Contains([]string{"succeeded", "failed", "cancelled"}, last.To)
		}))
	},
	"Whose payloads were erased, by whom and why?": func(n *night, a *answer) {
		erased := n.kind("erased")
		a.jobs(n, jobsOf(erased))
		for _, d := range erased {
			a.line(d.Job, d.Actor, d.Data.Reason)
		}
	},
	"What changed between 00:15 and 00:45?": func(n *night, a *answer) {
		moved := make(map[string]int)
		for _, job := range n.jobsWhere(func(string, deed) bool { return true }) {
			if slices.ContainsFunc(n.byJob[job], func(d deed) bool { return within(d.At, "00:15:00", "00:45:00") }) {
				moved[n.stateAt(job, clock("00:15:00"))+" → "+n.stateAt(job, clock("00:45:00"))]++
			}
		}
		for move, count := range moved {
			if strings.HasPrefix(move, " ") {
				move = "–" + move
			}
			line := a.with(move + ":")
			if len(line) != 1 || len(ulids().FindAllString(line[0], -1)) != min(count, 5) ||
				count > 5 && !strings.Contains(line[0], fmt.Sprintf("and %d more", count-5)) {
				a.t.Errorf("%s: got %q, want %d", move, line, count)
			}
		}
		a.line("worker went", "charlie-render")
	},
	"Does the table agree with the history?": func(n *night, a *answer) {
		a.line("ok:", fmt.Sprintf("%d events of %d jobs", len(n.deeds)+1, len(n.byJob))) // plus the event imported
	},
	"Show me the night as lanes, at https://ui.perfetto.dev.": func(n *night, a *answer) {
		var trace struct {
			TraceEvents []struct{ Ph string }
		}
		if err := json.Unmarshal([]byte(a.out), &trace); err != nil {
			a.t.Fatal(err)
		}
		var got, want int
		for _, e := range trace.TraceEvents {
			if e.Ph == "X" {
				got++
			}
		}
		for _, h := range n.holds {
			if !h.from.After(clock("04:00:00")) && !h.end.Before(clock("00:00:00")) {
				want++
			}
		}
		if got != want {
			a.t.Errorf("%d slices, want %d claims", got, want)
		}
	},
	"Give the analyst every claim, for a spreadsheet.": func(n *night, a *answer) {
		a.rows(",", len(n.holds)+1)
		for _, h := range n.holds {
			a.rows(fmt.Sprintf("%s,%d,%s,%s,", h.job, h.attempt, n.queue[h.job], h.worker), 1)
		}
	},
	"Hand the incident to a colleague, without the customers' data: report, events, lanes.": func(
		n *night, a *answer,
	) {
		report, err := os.ReadFile(filepath.Join("incident", "report.md"))
		if err != nil {
			a.t.Fatal(err)
		}
		shown := &answer{t: a.t, out: string(report)}
		for _, d := range n.kind("refused") {
			shown.line("`"+d.Job+"`", "`"+d.Data.Command+"`")
		}
		events, err := os.ReadFile(filepath.Join("incident", "events.jsonl"))
		if err != nil || bytes.Count(events, []byte("\n")) != len(n.deeds) ||
			bytes.Contains(events, []byte(`"payload":`)) {
			a.t.Errorf("%v; %d events, want %d without payloads", err, bytes.Count(events, []byte("\n")), len(n.deeds))
		}
	},
}

// depth counts the jobs of a queue by state at a given time.
func (n *night) depth(queue string, at time.Time) map[string]int {
	depth := make(map[string]int)
	for job, of := range n.queue {
		if of == queue {
			depth[n.stateAt(job, at)]++
		}
	}
	return depth
}

// notBefore returns when a job may run, according to its last event up to then.
func (n *night) notBefore(job string, at time.Time) (when time.Time) {
	for _, d := range n.byJob[job] {
		if !d.At.After(at) {
			when = latest(d.At, d.Data.RetryAt, d.Data.RunAt)
		}
	}
	return when
}
