package oracletest

import "time"

// waitCauses are what jobs wait for. Where several apply, it is the first.
var waitCauses = []string{"dependency", "schedule", "paused", "limit", "worker"}

// Causes is how long the jobs of each queue waited within w, and for what: each job is looked at between each
// two events. It knows no limits but how many jobs of a queue may be held at once.
func (l *Ledger) Causes(w Window) (rows []Row) {
	open, holding := make(map[string]*job), make(map[string]float64)
	paused, bound := make(map[string]bool), make(map[string]float64)
	spent := make(map[string]map[string]map[string]time.Duration) // by queue, cause and job
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
		for _, j := range open {
			if held(j.state) {
				holding[j.queue]++
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
				rows = append(rows, Row{"queue": queue, "cause": cause, "jobs": float64(len(spent[queue][cause])),
					"waited": seconds(all), "longest": seconds(longest)})
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
