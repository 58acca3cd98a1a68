package oracletest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Codes is how often each error code occurred within w, in how many jobs; or of claims that ended otherwise,
// each reason.
func (l *Ledger) Codes(w Window, outcomes ...string) (rows []Row) {
	if len(outcomes) == 0 {
		outcomes = []string{"failed", "reclaimed"}
	}
	type group struct {
		count       float64
		jobs        map[string]bool
		first, last time.Time
	}
	groups := make(map[string]*group)
	for _, e := range l.within(w) {
		if !slices.Contains(outcomes, e.Kind) || e.claim == nil || !w.of(e.claim.queue) || !w.by(e.claim.owner) {
			continue
		}
		code := cmp.Or(e.text("error_code"), e.text("reason"))
		if groups[code] == nil {
			groups[code] = &group{jobs: make(map[string]bool), first: e.At}
		}
		g := groups[code]
		g.count, g.last = g.count+1, e.At
		g.jobs[e.Job] = true
	}
	for _, code := range sortedKeys(groups) {
		g := groups[code]
		rows = append(rows, Row{"code": some(code), "count": g.count, "jobs": float64(len(g.jobs)),
			"first": stamp(g.first), "last": stamp(g.last)})
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Compare(b["count"].(float64), a["count"].(float64))
	})
	return rows
}

// varying matches the parts of a failure's detail that differ between failures of one sort in the histories:
// quoted text, addresses, paths, long hexadecimal numbers, and numbers that no letter follows.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|[\w.+-]+@[\w.-]+|\B(?:/[\w.@-]+)+|\b[0-9a-fA-F]{8,}\b|` +
	`\d+(?:[.:,]\d+)*\b`)

// code is what such a number looks like that is kept at the beginning of a line.
var code = regexp.MustCompile(`^[1-5]\d\d\b`)

// colour is what a terminal takes for one.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// fold is the last line of a failure's detail without what varies.
func fold(detail string) (line, same string) {
	lines := strings.Split(strings.TrimSpace(detail), "\n")
	line = strings.TrimSpace(lines[len(lines)-1])
	same = colour.ReplaceAllString(line, "")
	kept := code.FindString(same)
	return line, kept + varying.ReplaceAllString(same[len(kept):], "…")
}

// Failures is the failures of w that look alike, the most frequent first: of one queue, with one code, exit
// code and signal, and a detail whose last line differs in what varies only.
func (l *Ledger) Failures(w Window) (rows []Row) {
	type group struct {
		queue, code, detail, example string
		exit, signal                 any
		count                        float64
		jobs                         map[string]bool
		workers                      Row
		first, last                  *Event
	}
	groups := make(map[string]*group)
	var order []*group
	for _, e := range l.within(w) {
		if e.Kind != "failed" && e.Kind != "reclaimed" || !w.of(e.claim.queue) || !w.by(e.claim.owner) {
			continue
		}
		code := cmp.Or(e.text("error_code"), e.text("reason"))
		line, same := fold(e.text("error_detail"))
		exit, signal := e.Data["exit_code"], e.Data["signal"]
		key := fmt.Sprint(e.claim.queue, "\x00", code, "\x00", exit, "\x00", signal, "\x00", same)
		g := groups[key]
		if g == nil {
			g = &group{queue: e.claim.queue, code: code, detail: same, exit: exit, signal: signal,
				jobs: make(map[string]bool), workers: Row{}, first: e}
			groups[key], order = g, append(order, g)
		}
		g.count, g.last, g.example = g.count+1, e, line
		g.jobs[e.Job] = true
		n, _ := g.workers[e.Worker].(float64)
		g.workers[e.Worker] = n + 1
	}
	slices.SortStableFunc(order, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.code, b.code))
	})
	for _, g := range order {
		rows = append(rows, Row{"queue": g.queue, "error_code": g.code, "detail": g.detail, "example": g.example,
			"exit_code": g.exit, "signal": g.signal, "attempts": g.count,
			"jobs": float64(len(g.jobs)), "first": stamp(g.first.At), "last": stamp(g.last.At),
			"last_pos": float64(g.last.Pos), "workers": g.workers})
	}
	return rows
}

// Diff is how many jobs to which something happened between two moments were in one state at the first, and
// in another at the second, with the oldest so many of them, and which processes came.
func (l *Ledger) Diff(from, to Moment, limit int) []Row {
	changed := make(map[string]bool)
	for _, e := range l.Events {
		if e.Pos > from.Pos && e.Pos <= to.Pos && e.Seq > 0 {
			changed[e.Job] = true
		}
	}
	type cell struct {
		from, to int
		count    float64
		jobs     []any
	}
	var cells []*cell
	before := l.jobs(from.Pos)
	for _, j := range inOrder(l.jobs(to.Pos)) {
		if !changed[j.id] {
			continue
		}
		was := -1
		if b := before[j.id]; b != nil {
			was = slices.Index(allStates, b.state)
		}
		is := slices.Index(allStates, j.state)
		i := slices.IndexFunc(cells, func(c *cell) bool { return c.from == was && c.to == is })
		if i < 0 {
			i, cells = len(cells), append(cells, &cell{from: was, to: is, jobs: []any{}})
		}
		if cells[i].count++; len(cells[i].jobs) < limit {
			cells[i].jobs = append(cells[i].jobs, j.id)
		}
	}
	slices.SortFunc(cells, func(a, b *cell) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	r := Row{"from": Row{"at": stamp(from.At), "pos": float64(from.Pos)},
		"to": Row{"at": stamp(to.At), "pos": float64(to.Pos)}, "workers_gained": l.came(from, to)}
	list := []any{}
	for _, c := range cells {
		was := any(nil)
		if c.from >= 0 {
			was = allStates[c.from]
		}
		list = append(list, Row{"from": was, "to": allStates[c.to], "count": c.count, "jobs": c.jobs})
	}
	r["cells"] = list
	return []Row{r}
}

// came are the processes that started between two moments; one that stopped and started again did not.
func (l *Ledger) came(from, to Moment) []any {
	started, stopped := make(map[Process]*Event), make(map[Process]*Event)
	for _, e := range l.Events {
		switch {
		case e.Pos <= from.Pos || e.Pos > to.Pos:
		case e.Kind == "worker_started":
			started[e.process()] = e
		case e.Kind == "worker_stopped":
			stopped[e.process()] = e
		}
	}
	var events []*Event
	for p, e := range started {
		if stop := stopped[p]; stop == nil || stop.Pos > e.Pos {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b *Event) int { return cmp.Compare(a.Pos, b.Pos) })
	list := []any{}
	for _, e := range events {
		p := e.process()
		list = append(list, Row{"worker": p.Name, "boot": p.Boot, "host": some(p.Host), "pid": p.PID,
			"at": stamp(e.At), "event": e.Kind})
	}
	return list
}

// operators are the kinds of what operators do.
var operators = []string{"cancelled", "retried", "edited", "rescheduled", "erased", "queue_paused",
	"queue_resumed", "rebuilt", "restored", "queue_limited", "queue_defaults", "schedule_set", "schedule_paused",
	"schedule_resumed", "schedule_removed"}

// Acts is what operators did within w, in the order of the last event of each: jobs to which the same was
// done by the same actor for the same reason within a minute are one act. A retry that is to run later
// reschedules the job too, which is not an act of its own.
func (l *Ledger) Acts(w Window) (rows []Row) {
	type act struct {
		last  *Event
		begin time.Time
		count float64
	}
	var acts []*act
	events := l.within(w)
	for k, e := range slices.Backward(events) { // the newest first: an act is named by its last event
		about := l.queues[e.Job]
		if e.Job == "" {
			about = e.text("queue")
		}
		if !slices.Contains(operators, e.Kind) || e.text("because") != "" || !w.of(about) {
			continue
		}
		spread := func(x *Event) bool {
			same := x.Job == e.Job && x.Actor == e.Actor && x.text("reason") == e.text("reason")
			return x.Kind == "retried" && same && e.At.Sub(x.At) < time.Minute
		}
		if e.Kind == "rescheduled" && slices.ContainsFunc(events[:k], spread) {
			continue
		}
		i := slices.IndexFunc(acts, func(a *act) bool {
			return e.Job != "" && a.last.Kind == e.Kind && a.last.Actor == e.Actor &&
				a.last.text("reason") == e.text("reason") && a.begin.Sub(e.At) < time.Minute
		})
		if i < 0 {
			acts = append(acts, &act{e, e.At, 1})
			continue
		}
		acts[i].count, acts[i].begin = acts[i].count+1, e.At
	}
	for _, a := range slices.Backward(acts) {
		rows = append(rows, Row{"pos": float64(a.last.Pos), "by": a.last.Actor, "kind": a.last.Kind,
			"count": a.count, "reason": a.last.text("reason")})
	}
	return rows
}
