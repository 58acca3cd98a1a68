package oracletest

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Process is a worker process.
type Process struct {
	Name, Boot, Host, Version string
	PID                       float64
}

// process is the process that the event names.
func (e *Event) process() Process {
	return Process{e.Worker, e.text("boot"), e.text("host"), e.text("version"), e.number("pid")}
}

// Claim is one attempt of a job, from its claimed event to the event that ended it.
type Claim struct {
	Process
	job, queue string
	attempt    int
	pos, until int64     // of the events; until 0: it has not ended
	from, end  time.Time // end is zero while it is held
	lease      time.Time // the last one
	owner      Process   // the last one: after it was taken over, who holds it
	outcome    string
	beats      []*Event // heartbeats and takeovers
	exit       any
	signal     any
	code       string
	late       bool   // it succeeded after its max runtime
	used       *Event // the event that says what it used; nil: none
}

// findClaims makes the claims, with the events of each, and finds the queues of the jobs.
func (l *Ledger) findClaims() {
	live := make(map[string]*Claim)        // by job
	all := make(map[string]map[int]*Claim) // by job and attempt
	l.queues, l.first = make(map[string]string), make(map[string]*Event)
	for _, e := range l.Events {
		e.claim = all[e.Job][e.Attempt]
		switch e.Kind {
		case "enqueued":
			l.queues[e.Job], l.first[e.Job], all[e.Job] = e.text("queue"), e, make(map[int]*Claim)
		case "claimed":
			c := &Claim{Process: e.process(), owner: e.process(), job: e.Job, queue: l.queues[e.Job],
				attempt: e.Attempt, pos: e.Pos, from: e.At, lease: e.time("lease_until")}
			live[e.Job], all[e.Job][e.Attempt], e.claim = c, c, c
			l.claims = append(l.claims, c)
		case "heartbeat":
			e.claim.beats, e.claim.lease = append(e.claim.beats, e), e.time("lease_until")
		case "taken_over":
			e.claim.beats, e.claim.lease = append(e.claim.beats, e), e.time("lease_until")
			e.claim.owner = e.process()
		case "succeeded", "failed", "released", "reclaimed", "cancelled":
			c := live[e.Job]
			if c == nil { // a job that waited was cancelled
				continue
			}
			c.end, c.until, c.outcome = e.At, e.Pos, e.Kind
			c.exit, c.signal = e.Data["exit_code"], e.Data["signal"]
			c.late = e.Data["after_max_runtime"] == true
			c.code = cmp.Or(e.text("error_code"), e.text("reason"))
			if c.used = e; e.Kind == "reclaimed" || e.Kind == "cancelled" {
				c.used = nil
			}
			delete(live, e.Job)
		case "stopped":
			if e.claim.used == nil {
				e.claim.used = e
			}
		}
	}
}

// row is the claim as attempts prints it, as of pos.
func (c *Claim) row(pos int64) Row {
	r := Row{"job": c.job, "id": c.job, "attempt": float64(c.attempt), "queue": c.queue, "worker": c.Name,
		"boot": c.Boot, "host": some(c.Host), "pid": c.PID, "claimed_at": stamp(c.from), "last_heartbeat": nil,
		"ended_at": nil, "outcome": nil, "exit_code": nil, "signal": nil, "version": some(c.Version),
		"code": nil}
	if cpu, _ := c.cost(pos); cpu > 0 {
		r["cpu_user"], r["cpu_system"] = c.used.number("cpu_user"), c.used.number("cpu_system")
	}
	if c.late && c.until <= pos {
		r["after_max_runtime"] = true
	}
	if _, rss := c.cost(pos); rss != nil {
		r["max_rss"] = rss
	}
	for _, e := range c.beats {
		if e.Pos <= pos {
			r["last_heartbeat"] = stamp(e.At)
		}
	}
	if c.until > 0 && c.until <= pos {
		r["ended_at"], r["outcome"], r["exit_code"], r["signal"] = stamp(c.end), c.outcome, c.exit, c.signal
		r["code"] = some(c.code)
	}
	return r
}

// Attempts returns the claims that were live at some time within w, both ends included, as of m, with one of
// the outcomes; "open" is a claim that has not ended. None: all.
func (l *Ledger) Attempts(w Window, m Moment, outcomes ...string) (rows []Row) {
	for _, c := range l.claims {
		ended := c.until > 0 && c.until <= m.Pos
		outcome := c.outcome
		if !ended {
			outcome = "open"
		}
		switch {
		case c.pos > min(w.Until, m.Pos), ended && c.until <= w.After, !w.of(c.queue), !w.by(c.Process),
			len(outcomes) > 0 && !slices.Contains(outcomes, outcome):
			continue
		}
		rows = append(rows, c.row(m.Pos))
	}
	return rows
}

// AttemptsOf is the claims of the job.
func (l *Ledger) AttemptsOf(id string) (rows []Row) {
	for _, c := range l.claims {
		if c.job != id {
			continue
		}
		r := c.row(l.Tail())
		for _, e := range l.Events {
			if e.Job == id && e.Kind == "replaced" && e.Pos > c.pos && r["payload_replaced_at"] == nil {
				r["payload_replaced_at"] = stamp(e.At)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// Owner is who held the job at m. A claim holds until just before the event of its end, whether its lease had
// run out or not.
func (l *Ledger) Owner(id string, m Moment) []Row {
	r := Row{"job": id, "id": id, "at": stamp(m.At), "pos": float64(m.Pos), "state": nil, "worker": nil,
		"boot": nil, "host": nil, "pid": nil, "attempt": nil, "since": nil, "until": nil}
	if j := l.jobs(m.Pos)[id]; j != nil {
		r["state"] = j.state
	}
	for _, c := range l.claims {
		if c.job == id && c.pos <= m.Pos && (c.until == 0 || c.until > m.Pos) {
			r["worker"], r["boot"], r["host"], r["pid"] = c.Name, c.Boot, some(c.Host), c.PID
			r["attempt"], r["since"], r["until"] = float64(c.attempt), stamp(c.from), stamp(c.end)
		}
	}
	return []Row{r}
}

// Waits is how long the jobs that were claimed within w had been ready, by queue.
func (l *Ledger) Waits(w Window) (rows []Row) {
	waits := l.waits(w)
	for _, queue := range sortedKeys(waits) {
		rows = append(rows, waitRow(queue, waits[queue]))
	}
	return rows
}

func waitRow(queue string, all []time.Duration) Row {
	return Row{"queue": queue, "claims": float64(len(all)), "p50": seconds(percentile(all, 50)),
		"p99": seconds(percentile(all, 99)), "max": seconds(slices.Max(all))}
}

// waits are the waits of the claims of w, by queue.
func (l *Ledger) waits(w Window) map[string][]time.Duration {
	waits := make(map[string][]time.Duration)
	jobs := make(map[string]*job)
	for _, e := range l.Events {
		if e.Kind == "enqueued" {
			jobs[e.Job] = new(job)
		}
		if e.Seq == 0 {
			continue
		}
		j := jobs[e.Job]
		if e.Kind == "claimed" && w.has(e.Pos) && w.of(j.queue) {
			waits[j.queue] = append(waits[j.queue], max(0, e.At.Sub(j.ready)))
		}
		j.add(e)
	}
	return waits
}

// cost is the processor time in seconds and the memory in bytes of the claim, as of pos; nil and 0 if
// unknown.
func (c *Claim) cost(pos int64) (cpu float64, rss any) {
	if c.used == nil || c.used.Pos > pos {
		return 0, nil
	}
	return c.used.number("cpu_user") + c.used.number("cpu_system"), c.used.Data["max_rss"]
}

// Costly is the attempts that ended within w and used most processor time, or memory, at most limit of them.
func (l *Ledger) Costly(w Window, memory bool, limit int) (rows []Row) {
	most := make(map[*Claim]float64)
	var used []*Claim
	for _, c := range l.claims {
		cpu, rss := c.cost(min(w.Until, l.Tail()))
		if most[c] = cpu; memory {
			most[c], _ = rss.(float64)
		}
		if w.has(c.until) && w.of(c.queue) && w.by(c.Process) && most[c] > 0 {
			used = append(used, c)
		}
	}
	slices.SortFunc(used, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a.job, b.job), cmp.Compare(a.pos, b.pos))
	})
	for _, c := range used[:min(limit, len(used))] {
		cpu, rss := c.cost(min(w.Until, l.Tail()))
		rows = append(rows, Row{"job": c.job, "attempt": float64(c.attempt), "queue": c.queue, "worker": c.Name,
			"claimed_at": stamp(c.from), "lasted": seconds(c.end.Sub(c.from)), "outcome": c.outcome,
			"cpu": math.Round(cpu*1e6) / 1e6, "max_rss": rss})
	}
	return rows
}

// Longest is the attempts that ended within w and lasted longest, at most limit of them.
func (l *Ledger) Longest(w Window, limit int) (rows []Row) {
	var ended []*Claim
	for _, c := range l.claims {
		if w.has(c.until) && w.of(c.queue) && w.by(c.Process) {
			ended = append(ended, c)
		}
	}
	slices.SortFunc(ended, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(b.end.Sub(b.from), a.end.Sub(a.from)), cmp.Compare(a.job, b.job))
	})
	for _, c := range ended[:min(limit, len(ended))] {
		rows = append(rows, Row{"job": c.job, "attempt": float64(c.attempt), "queue": c.queue, "worker": c.Name,
			"claimed_at": stamp(c.from), "lasted": seconds(c.end.Sub(c.from)), "outcome": c.outcome,
			"after_max_runtime": nil})
		if c.late {
			rows[len(rows)-1]["after_max_runtime"] = true
		}
	}
	return rows
}

// Taken is the jobs that were taken from a worker within w, and the claim after that.
func (l *Ledger) Taken(w Window) (rows []Row) {
	for _, e := range l.within(w) {
		if e.Kind != "reclaimed" || !w.of(e.claim.queue) || !w.by(e.claim.owner) {
			continue
		}
		r := Row{"at": stamp(e.At), "job": e.Job, "queue": e.claim.queue, "attempt": float64(e.Attempt),
			"worker": e.Worker, "reason": e.text("reason"), "next_worker": nil, "next_claimed_at": nil,
			"waited": nil, "next_outcome": nil}
		for _, c := range l.claims {
			if c.job == e.Job && c.attempt == e.Attempt+1 {
				r["next_worker"], r["next_claimed_at"] = c.Name, stamp(c.from)
				r["waited"], r["next_outcome"] = seconds(c.from.Sub(e.At)), cmp.Or(c.outcome, "open")
			}
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a["at"].(string), b["at"].(string)),
			cmp.Compare(a["job"].(string), b["job"].(string)))
	})
	return rows
}

// Recovery is how long the jobs that were taken from a worker within w and claimed again had waited, from the
// end of the lease or from when they were taken where that was earlier, by queue.
func (l *Ledger) Recovery(w Window) (rows []Row) {
	gaps := make(map[string][]time.Duration)
	for _, e := range l.within(w) {
		if e.Kind != "reclaimed" || !w.of(e.claim.queue) || !w.by(e.claim.owner) {
			continue
		}
		since := e.At
		if end := e.time("lease_until"); end.Before(since) {
			since = end
		}
		for _, c := range l.claims {
			if c.job == e.Job && c.attempt == e.Attempt+1 {
				gaps[e.claim.queue] = append(gaps[e.claim.queue], c.from.Sub(since))
			}
		}
	}
	for _, queue := range sortedKeys(gaps) {
		rows = append(rows, waitRow(queue, gaps[queue]))
	}
	return rows
}

// Poison is the jobs that were taken from more than one process within w, those with the most processes
// first.
func (l *Ledger) Poison(w Window) (rows []Row) {
	type lost struct {
		workers []any
		boots   map[string]bool
		last    time.Time
		queue   string
	}
	jobs := make(map[string]*lost)
	for _, e := range l.within(w) {
		if e.Kind != "reclaimed" || !w.of(e.claim.queue) {
			continue
		}
		if jobs[e.Job] == nil {
			jobs[e.Job] = &lost{boots: make(map[string]bool), queue: e.claim.queue}
		}
		j := jobs[e.Job]
		j.workers, j.last = append(j.workers, e.Worker), e.At
		j.boots[e.claim.owner.Boot] = true
	}
	for _, id := range sortedKeys(jobs) {
		if j := jobs[id]; len(j.boots) > 1 {
			rows = append(rows, Row{"job": id, "queue": j.queue, "taken": float64(len(j.workers)),
				"processes": float64(len(j.boots)), "workers": j.workers, "last": stamp(j.last),
				"state_now": l.jobs(l.Tail())[id].state})
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b["processes"].(float64), a["processes"].(float64)),
			cmp.Compare(a["last"].(string), b["last"].(string)), cmp.Compare(a["job"].(string), b["job"].(string)))
	})
	return rows
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
