package oracletest

import (
	"cmp"
	"slices"
	"time"
)

// pauses is the last pause or resume of each queue at m.
func (l *Ledger) pauses(m Moment) map[string]*Event {
	last := make(map[string]*Event)
	for _, e := range l.Events {
		if e.Pos <= m.Pos && (e.Kind == "queue_paused" || e.Kind == "queue_resumed") {
			last[e.text("queue")] = e
		}
	}
	return last
}

// Queues is the queues that had jobs by m or were ever paused, by name.
func (l *Ledger) Queues(m Moment) (rows []Row) {
	pauses, names := l.pauses(m), make(map[string]bool)
	for name := range pauses {
		names[name] = true
	}
	for _, j := range l.jobs(m.Pos) {
		names[j.queue] = true
	}
	for _, name := range sortedKeys(names) {
		r := Row{"queue": name, "paused": false, "since": nil, "actor": nil, "reason": nil}
		if p := pauses[name]; p != nil {
			r["paused"], r["since"] = p.Kind == "queue_paused", stamp(p.At)
			r["actor"], r["reason"] = some(p.Actor), some(p.text("reason"))
		}
		rows = append(rows, r)
	}
	return rows
}

// Status is how many jobs every queue had in which state at m that had jobs by then or is paused; if m is of
// the past, with how many jobs there are now.
func (l *Ledger) Status(m Moment, past bool) (rows []Row) {
	byQueue, now := make(map[string][]*job), make(map[string]map[string]float64)
	pauses := l.pauses(m)
	for name, p := range pauses {
		if p.Kind == "queue_paused" {
			byQueue[name] = nil
		}
	}
	for _, j := range inOrder(l.jobs(m.Pos)) {
		byQueue[j.queue] = append(byQueue[j.queue], j)
	}
	for _, j := range l.jobs(l.Tail()) {
		if now[j.queue] == nil {
			now[j.queue] = make(map[string]float64)
		}
		now[j.queue][j.state]++
	}
	lost := l.lostClaims(m)
	for _, name := range sortedKeys(byQueue) {
		r := statusOf(byQueue[name], m)
		r["queue"] = name
		r["paused"], r["paused_since"], r["paused_by"], r["paused_reason"] = false, nil, nil, nil
		if p := pauses[name]; p != nil && p.Kind == "queue_paused" {
			r["paused"], r["paused_since"] = true, stamp(p.At)
			r["paused_by"], r["paused_reason"] = some(p.Actor), some(p.text("reason"))
		}
		r["last_hour"] = l.activity(name, m)
		r["lost_claims"] = nil
		if of := lost[name]; len(of) > 0 {
			r["lost_claims"] = of
		}
		if past {
			then := Row{"blocked": nil}
			for _, state := range allStates {
				if n := now[name][state]; n > 0 || state != "blocked" {
					then[state] = n
				}
			}
			r["now"], r["as_of"], r["pos"] = then, stamp(m.At), float64(m.Pos)
		}
		rows = append(rows, r)
	}
	return rows
}

// statusOf counts the jobs of a queue.
func statusOf(jobs []*job, m Moment) Row {
	counts := make(map[string]float64)
	var ready, later, retrying, expired float64
	var oldest, next, lease time.Time
	first := func(a *time.Time, b time.Time) {
		if a.IsZero() || b.Before(*a) {
			*a = b
		}
	}
	for _, j := range jobs {
		counts[j.state]++
		switch {
		case j.state == "queued" && j.run.After(m.At):
			later++
			first(&next, j.run)
		case j.state == "queued":
			ready++
			first(&oldest, j.run)
		case held(j.state) && !j.lease.After(m.At):
			expired++
			first(&lease, j.lease)
		}
		if j.state == "queued" && j.failures > 0 {
			retrying++
		}
	}
	r := Row{"ready": ready, "scheduled": later, "retrying": retrying, "oldest_ready_wait": nil,
		"next_run_at": stamp(next), "expired_leases": expired, "oldest_expired_lease": stamp(lease), "blocked": nil}
	for _, state := range allStates {
		if n := counts[state]; n > 0 || state != "blocked" {
			r[state] = n
		}
	}
	if !oldest.IsZero() {
		r["oldest_ready_wait"] = seconds(m.At.Sub(oldest))
	}
	return r
}

// activity counts the events of the jobs of a queue in the hour before m.
func (l *Ledger) activity(queue string, m Moment) Row {
	r := Row{}
	for _, kind := range []string{"enqueued", "claimed", "succeeded", "failed", "released", "reclaimed",
		"cancelled", "refused"} {
		r[kind] = 0.0
	}
	for _, e := range l.Events {
		if n, counts := r[e.Kind].(float64); counts && e.Pos <= m.Pos && e.At.After(m.At.Add(-time.Hour)) &&
			l.queues[e.Job] == queue {
			r[e.Kind] = n + 1
		}
	}
	return r
}

// lostClaims are the claims that were cancelled or reclaimed by m and whose commands may still run then, by
// queue: the lease has not ended, and no event stopped says that the command has.
func (l *Ledger) lostClaims(m Moment) map[string][]any {
	lost := make(map[string][]any)
	var ended []*Event
	for _, e := range l.Events {
		if e.claim != nil && e.Pos <= m.Pos && (e.Kind == "cancelled" || e.Kind == "reclaimed") {
			ended = append(ended, e)
		}
	}
	for _, e := range ended {
		c := e.claim
		stopped := slices.ContainsFunc(l.Events, func(s *Event) bool {
			return s.Kind == "stopped" && s.claim == c && s.Pos <= m.Pos
		})
		until, why := c.lease, ""
		for _, s := range l.Events {
			if s.Kind == "survived" && s.claim == c && s.Pos <= m.Pos {
				until, why = s.time("lease_until"), s.text("cannot_end")
			}
		}
		if stopped || !until.After(m.At) {
			continue
		}
		row := Row{"job": c.job, "id": c.job, "attempt": float64(c.attempt),
			"worker": c.owner.Name, "host": some(c.owner.Host), "pid": c.owner.PID, "claimed_at": stamp(c.from),
			"lost_at": stamp(e.At), "ending": e.Kind, "may_run_until": stamp(until)}
		if why != "" {
			row["cannot_end"] = why
		}
		lost[c.queue] = append(lost[c.queue], row)
	}
	return lost
}

// Backlog is the jobs enqueued within w that had not ended that long after, by id.
func (l *Ledger) Backlog(w Window, after time.Duration) (rows []Row) {
	now := l.jobs(l.Tail())
	for _, e := range l.within(w) {
		if e.Kind != "enqueued" || !w.of(e.text("queue")) || e.At.Add(after).After(l.Now) {
			continue
		}
		then := ""
		for _, x := range l.Events {
			if x.Job == e.Job && x.Seq > 0 && !x.At.After(e.At.Add(after)) {
				then = x.To
			}
		}
		if !final(then) {
			rows = append(rows, Row{"job": e.Job, "queue": e.text("queue"), "enqueued": stamp(e.At), "state": then,
				"state_now": now[e.Job].state})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a["job"].(string), b["job"].(string)) })
	return rows
}

// Totals is what has happened to the jobs of each queue since the first event.
func (l *Ledger) Totals() (rows []Row) {
	waits, queues := l.waits(Window{Until: l.Tail()}), make(map[string]Row)
	for _, queue := range l.queues {
		var sum time.Duration
		for _, wait := range waits[queue] {
			sum += wait
		}
		outcomes := Row{"succeeded": 0.0, "failed": 0.0, "released": 0.0, "reclaimed": 0.0, "cancelled": 0.0}
		queues[queue] = Row{"queue": queue, "waits": float64(len(waits[queue])), "waited": seconds(sum),
			"outcomes": outcomes, "codes": Row{}}
	}
	count := func(row any, name string) {
		n, _ := row.(Row)[name].(float64)
		row.(Row)[name] = n + 1
	}
	for _, c := range l.claims {
		if c.outcome != "" {
			count(queues[c.queue]["outcomes"], c.outcome)
		}
	}
	for _, e := range l.Events {
		if e.Kind == "failed" || e.Kind == "reclaimed" {
			count(queues[e.claim.queue]["codes"], cmp.Or(e.text("error_code"), e.text("reason")))
		}
	}
	for _, name := range sortedKeys(queues) {
		rows = append(rows, queues[name])
	}
	return rows
}
