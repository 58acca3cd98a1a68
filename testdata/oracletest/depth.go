package oracletest

import (
	"time"
)

// Depth is how many jobs of each queue were queued, and how many held, at the end of each step of w, from the
// first step in which a job changed its state to the last, of the queues that have any then. If none did, it
// has the numbers at the end of w, for the queues that have jobs.
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
