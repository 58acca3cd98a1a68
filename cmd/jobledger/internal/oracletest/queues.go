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

// Depth is how many jobs of each queue were queued, and how many held, at the end of each step of w, from the
// first step in which a job changed its state to the last, of the queues that have any then. If none did,
// it is how many there are at the end of w, of the queues that have any.
func (l *Ledger) Depth(w Window, step time.Duration) (rows []Row) {
	type depth struct{ queued, held float64 }
	now := make(map[string]*depth)
	for _, j := range l.jobs(w.After) {
		if !w.of(j.queue) || j.state != "queued" && !held(j.state) {
			continue
		}
		if now[j.queue] == nil {
			now[j.queue] = new(depth)
		}
		if j.state == "queued" {
			now[j.queue].queued++
		} else {
			now[j.queue].held++
		}
	}
	var moves []*Event
	for _, e := range l.within(w) {
		if e.Seq > 0 && e.Kind != "heartbeat" && w.of(l.queues[e.Job]) {
			moves = append(moves, e)
			if now[l.queues[e.Job]] == nil {
				now[l.queues[e.Job]] = new(depth)
			}
		}
	}
	row := func(at time.Time, queue string) {
		rows = append(rows, Row{"minute": stamp(at), "queue": queue, "queued": now[queue].queued,
			"held": now[queue].held})
	}
	if len(moves) == 0 {
		end := l.Now
		if w.ends {
			end = w.To
		}
		for _, queue := range sortedKeys(now) {
			if d := now[queue]; d.queued+d.held > 0 {
				row(end.Truncate(step), queue)
			}
		}
		return rows
	}
	last := moves[len(moves)-1].At.Truncate(step)
	for at := moves[0].At.Truncate(step); !at.After(last); at = at.Add(step) {
		for len(moves) > 0 && moves[0].At.Before(at.Add(step)) {
			e := moves[0]
			d := now[l.queues[e.Job]]
			for state, n := range map[string]float64{e.From: -1, e.To: 1} {
				if e.From == e.To {
					continue
				}
				if state == "queued" {
					d.queued += n
				}
				if held(state) {
					d.held += n
				}
			}
			moves = moves[1:]
		}
		for _, queue := range sortedKeys(now) {
			row(at, queue)
		}
	}
	return rows
}

// Points is how many jobs were queued, and how many held, at n moments as far from each other, from the
// moment from up to the moment to.
func (l *Ledger) Points(from, to Moment, n int, queue string) []Row {
	at, queued, holding := []any{}, []any{}, []any{}
	for i := range n {
		m := Moment{to.Pos, to.At}
		if i < n-1 {
			m.At = from.At.Add(to.At.Sub(from.At) / time.Duration(n) * time.Duration(i+1)).Truncate(time.Microsecond)
			m.Pos = min(to.Pos, max(from.Pos, l.At(stamp(m.At).(string)).Pos))
		}
		var q, h float64
		for _, j := range l.jobs(m.Pos) {
			switch {
			case queue != "" && j.queue != queue:
			case j.state == "queued":
				q++
			case held(j.state):
				h++
			}
		}
		at, queued, holding = append(at, stamp(m.At)), append(queued, q), append(holding, h)
	}
	return []Row{{"at": at, "queued": queued, "held": holding}}
}

// Series is what the queue, or all of them, did in each step between two moments. A step has the events from
// its beginning to just before its end; the last one has its end too.
func (l *Ledger) Series(from, to Moment, queue string, step time.Duration) []Row {
	type part struct {
		claimed, succeeded, failed, lost, ended float64
		waits, runs                             []time.Duration
		end                                     Moment
	}
	var parts []*part
	for at := from.At; at.Before(to.At); at = at.Add(step) {
		p := &part{end: Moment{from.Pos, at.Add(step)}}
		if p.end.At.After(to.At) {
			p.end.At = to.At
		}
		parts = append(parts, p)
	}
	ready := make(map[string]*job)
	i := 0
	for _, e := range l.Events {
		if e.Kind == "enqueued" {
			ready[e.Job] = new(job)
		}
		j := ready[e.Job]
		if e.Seq == 0 || e.Pos > to.Pos {
			continue
		}
		was := *j
		j.add(e)
		if e.Pos <= from.Pos {
			continue
		}
		for i < len(parts)-1 && !e.At.Before(parts[i].end.At) {
			parts[i+1].end.Pos = parts[i].end.Pos
			i++
		}
		p := parts[i]
		p.end.Pos = e.Pos
		if queue != "" && j.queue != queue {
			continue
		}
		if e.Kind == "claimed" {
			p.claimed++
			p.waits = append(p.waits, max(0, e.At.Sub(was.ready)))
		}
		if held(e.From) && !held(e.To) {
			p.ended++
			p.runs = append(p.runs, e.At.Sub(was.claimed))
		}
		switch e.Kind {
		case "succeeded":
			p.succeeded++
		case "failed":
			p.failed++
		case "reclaimed":
			p.lost++
		}
	}
	for i++; i < len(parts); i++ {
		parts[i].end.Pos = parts[i-1].end.Pos
	}
	r := Row{"from": stamp(from.At), "step": step.Seconds()}
	add := func(name string, value float64) {
		list, _ := r[name].([]any)
		r[name] = append(list, value)
	}
	for _, p := range parts {
		add("claimed", p.claimed)
		add("succeeded", p.succeeded)
		add("failed", p.failed)
		add("lost", p.lost)
		add("ended", p.ended)
		for _, percent := range []struct {
			name   string
			values []time.Duration
			of     int
		}{{"wait_p50", p.waits, 50}, {"wait_p90", p.waits, 90}, {"wait_p99", p.waits, 99}, {"run_p50", p.runs, 50},
			{"run_p99", p.runs, 99}} {
			add(percent.name, seconds(percentile(percent.values, percent.of)))
		}
		var now, later, holding float64
		for _, j := range l.jobs(p.end.Pos) {
			switch {
			case queue != "" && j.queue != queue:
			case held(j.state):
				holding++
			case j.state == "queued" && j.run.After(p.end.At):
				later++
			case j.state == "queued":
				now++
			}
		}
		add("ready", now)
		add("later", later)
		add("held", holding)
		add("queued", now+later)
	}
	return []Row{r}
}

// Backlog is the jobs enqueued within w that had not ended so long after that, by id.
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
