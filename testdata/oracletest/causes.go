package oracletest

import (
	"slices"
	"time"
)

// waitCauses are what jobs wait for. If several apply, it is the first.
var waitCauses = []string{"dependency", "schedule", "paused", "limit", "worker"}

// Causes is how long the jobs of each queue waited within w, and for what: each job is looked at between each
// two events. It knows no limits but how many jobs of a queue may be held at once. Of a wait for a worker, it
// says for how long none was there that takes the job.
func (l *Ledger) Causes(w Window) (rows []Row) {
	open, holding, clients := make(map[string]*job), make(map[string]float64), make(map[string]bool)
	paused, bound := make(map[string]bool), make(map[string]float64)
	spent := make(map[string]map[string]map[string]time.Duration) // by queue, cause and job
	lives, alone := l.lives(), make(map[string]time.Duration)
	spend := func(j *job, cause string, d time.Duration) {
		if d <= 0 || !w.of(j.queue) {
			return
		}
		if spent[j.queue] == nil {
			spent[j.queue] = make(map[string]map[string]time.Duration)
		}
		if spent[j.queue][cause] == nil {
			spent[j.queue][cause] = make(map[string]time.Duration)
		}
		spent[j.queue][cause][j.id] += d
	}
	account := func(from, to time.Time) {
		clear(holding)
		clear(clients) // the queues of which a process that did not announce them holds a job
		for _, j := range open {
			if held(j.state) {
				holding[j.queue]++
				if p := lives[j.owner]; p == nil || !slices.Contains(p.queues, j.queue) {
					clients[j.queue] = true
				}
			}
		}
		for _, j := range open {
			begin := from
			switch {
			case j.state == "blocked":
				spend(j, "dependency", to.Sub(from))
			case j.state != "queued":
			case j.ready.After(to):
				spend(j, "schedule", to.Sub(from))
			default:
				if j.ready.After(from) {
					spend(j, "schedule", j.ready.Sub(from))
					begin = j.ready
				}
				cause := "worker"
				if n := bound[j.queue]; n > 0 && holding[j.queue] >= n {
					cause = "limit"
				}
				if paused[j.queue] {
					cause = "paused"
				}
				spend(j, cause, to.Sub(begin))
				if cause == "worker" && !clients[j.queue] {
					alone[j.queue] += unserved(lives, j, begin, to)
				}
			}
		}
	}
	last := w.begins
	for _, e := range l.Events {
		if e.Pos > w.Until {
			break
		}
		if w.has(e.Pos) {
			account(last, e.At)
			last = e.At
		}
		switch {
		case e.Kind == "queue_paused" || e.Kind == "queue_resumed":
			paused[e.text("queue")] = e.Kind == "queue_paused"
		case e.Kind == "queue_limited":
			bound[e.text("queue")] = e.number("running")
		case e.Seq > 0:
			if open[e.Job] == nil {
				open[e.Job] = l.jobBefore(e)
			}
			if open[e.Job].add(e); final(e.To) {
				delete(open, e.Job)
			}
		}
	}
	account(last, w.To)
	for _, queue := range sortedKeys(spent) {
		for _, cause := range waitCauses {
			var all, longest time.Duration
			for _, d := range spent[queue][cause] {
				all, longest = all+d, max(longest, d)
			}
			if all > 0 {
				r := Row{"queue": queue, "cause": cause, "jobs": float64(len(spent[queue][cause])),
					"waited": seconds(all), "longest": seconds(longest), "no_worker": nil}
				if cause == "worker" {
					r["no_worker"] = seconds(alone[queue])
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// jobBefore is the job of e right before it.
func (l *Ledger) jobBefore(e *Event) *job {
	j := new(job)
	if e.Kind == "enqueued" {
		return j
	}
	for _, was := range l.Events {
		if was.Pos < e.Pos && was.Job == e.Job && was.Seq > 0 {
			j.add(was)
		}
	}
	return j
}

// life is what a process announced, and until when it lived.
type life struct {
	queues, labels []string
	from, until    time.Time
}

// lives are the processes that announced their start: each lived until it announced its stop, else until its
// last act or the end of a lease that it still holds.
func (l *Ledger) lives() map[Process]*life {
	all, running := make(map[Process]*life), make(map[Process]int) // starts without a stop
	stops := make(map[Process]time.Time)
	for _, e := range l.Events {
		if e.Kind == "worker_started" {
			p := e.process()
			if all[p] == nil {
				all[p] = &life{from: e.At}
			}
			all[p].queues = append(all[p].queues, e.list("queues")...)
			all[p].labels = append(all[p].labels, e.list("capabilities")...)
			running[p]++
		}
		if p, ok := l.acting(e); ok && all[p] != nil {
			all[p].until = e.At
		}
		if e.Kind == "worker_stopped" {
			running[e.process()]--
			stops[e.process()] = e.At
		}
	}
	for p, of := range all {
		if running[p] <= 0 {
			of.until = stops[p]
		}
	}
	for _, c := range l.claims {
		if p := all[c.owner]; p != nil && running[c.owner] > 0 && c.until == 0 && c.lease.After(p.until) {
			p.until = c.lease
		}
	}
	return all
}

// unserved is for how long between two times no process lived that announced the queue and takes the job.
func unserved(lives map[Process]*life, j *job, from, to time.Time) (d time.Duration) {
	serves := func(who Process, p *life) bool {
		return slices.Contains(p.queues, j.queue) && j.fits(who, p.labels)
	}
	times := []time.Time{from, to}
	for who, p := range lives {
		if !from.Before(p.from) && !to.After(p.until) && serves(who, p) {
			return 0 // all the time
		}
		times = append(times, p.from, p.until)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i, begin := range times[:len(times)-1] {
		served := begin.Before(from) || !begin.Before(to)
		for who, p := range lives {
			served = served || !begin.Before(p.from) && begin.Before(p.until) && serves(who, p)
		}
		if !served {
			d += times[i+1].Sub(begin)
		}
	}
	return d
}

// fits reports whether a process with these labels takes j.
func (j *job) fits(p Process, labels []string) bool {
	asked, _ := j.requires.([]any)
	return (j.version == "" || j.version == p.Version) && !slices.ContainsFunc(asked, func(label any) bool {
		return !slices.Contains(labels, label.(string))
	})
}
