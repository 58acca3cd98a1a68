package oracletest

import (
	"cmp"
	"slices"
	"time"
)

// silentAfter is how long a process is without a sign of life before it counts as silent: three records of
// its presence.
const silentAfter = 45 * time.Second

// signs are the kinds that only a living process causes.
var signs = []string{"claimed", "heartbeat", "succeeded", "failed", "released", "refused", "worker_started",
	"worker_stopped", "stopped", "survived", "taken_over"}

// acting is the process that caused the event; ok is false if no process did, or it is not known which.
func (l *Ledger) acting(e *Event) (p Process, ok bool) {
	switch e.Kind {
	case "worker_started", "worker_stopped", "claimed", "taken_over":
		return e.process(), true
	}
	if !slices.Contains(signs, e.Kind) || e.claim == nil {
		return p, false
	}
	p = e.claim.Process
	for _, x := range e.claim.beats { // who held the claim then
		if x.Kind == "taken_over" && x.Pos < e.Pos {
			p = x.process()
		}
	}
	return p, true
}

// Silent is the processes that announced their start and not their end, and whose last sign of life is within
// w, in the order of that sign, with how many of the claims that they held within w were taken from them and
// how many they still hold.
func (l *Ledger) Silent(w Window) (rows []Row) {
	last, starts, stops := make(map[Process]*Event), make(map[Process]int), make(map[Process]int)
	for _, e := range l.Events {
		if p, ok := l.acting(e); ok {
			last[p] = e
		}
		switch e.Kind {
		case "worker_started":
			starts[e.process()]++
		case "worker_stopped":
			stops[e.process()]++
		}
	}
	var silent []Process
	for p, e := range last {
		if starts[p] > stops[p] && !l.lived[p] && w.has(e.Pos) && w.by(p) && l.Now.Sub(e.At) >= silentAfter {
			silent = append(silent, p)
		}
	}
	slices.SortFunc(silent, func(a, b Process) int {
		return cmp.Or(last[a].At.Compare(last[b].At), cmp.Compare(a.Boot, b.Boot))
	})
	for _, p := range silent {
		var lost, holds float64
		for _, c := range l.claims {
			switch {
			case c.owner != p || c.until > 0 && c.until <= w.After:
			case c.outcome == "reclaimed":
				lost++
			case c.until == 0:
				holds++
			}
		}
		rows = append(rows, Row{"last_sign_of_life": stamp(last[p].At), "worker": p.Name, "host": some(p.Host),
			"pid": p.PID, "boot": p.Boot, "lost": lost, "held": holds})
	}
	return rows
}

// Workers is every process that had started by m or holds a job then, by name, and what it holds. It does not
// ask whether a process that has not stopped is still alive.
func (l *Ledger) Workers(m Moment) (rows []Row) {
	type life struct {
		started, stopped time.Time
		lives            int
		announced        bool
		queues           []string
		jobs             []*job
	}
	found := make(map[Process]*life)
	of := func(p Process) *life {
		if found[p] == nil {
			found[p] = new(life)
		}
		return found[p]
	}
	for _, e := range l.Events {
		switch {
		case e.Pos > m.Pos:
		case e.Kind == "worker_started":
			f := of(e.process())
			f.announced, f.lives = true, f.lives+1
			if f.started.IsZero() {
				f.started = e.At
			}
			f.queues = append(f.queues, e.list("queues")...)
		case e.Kind == "worker_stopped":
			f := of(e.process())
			f.lives, f.stopped = f.lives-1, e.At
		}
	}
	for _, j := range inOrder(l.jobs(m.Pos)) {
		if !held(j.state) {
			continue
		}
		f := of(j.owner)
		f.jobs = append(f.jobs, j)
		if !f.announced && (f.started.IsZero() || j.claimed.Before(f.started)) {
			f.started = j.claimed
		}
	}
	var list []Process
	for p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), found[a].started.Compare(found[b].started),
			cmp.Compare(a.Boot, b.Boot))
	})
	for _, p := range list {
		f := found[p]
		slices.Sort(f.queues)
		queues := []any{}
		for _, q := range slices.Compact(f.queues) {
			queues = append(queues, q)
		}
		jobs := []any{}
		slices.SortStableFunc(f.jobs, func(a, b *job) int { return a.claimed.Compare(b.claimed) })
		for _, j := range f.jobs {
			jobs = append(jobs, Row{"job": j.id, "id": j.id, "queue": j.queue, "state": j.state,
				"attempt": float64(j.attempt), "claimed_at": stamp(j.claimed), "heartbeat_at": stamp(j.beat),
				"lease_expires_at": stamp(j.lease), "progress": j.progress, "note": some(j.note)})
		}
		r := Row{"worker": p.Name, "boot": p.Boot, "host": some(p.Host), "pid": p.PID, "version": some(p.Version),
			"queues": queues, "started_at": stamp(f.started), "stopped_at": nil, "jobs": jobs}
		if f.lives <= 0 && f.announced {
			r["stopped_at"] = stamp(f.stopped)
		}
		rows = append(rows, r)
	}
	return rows
}
