package oracletest

import (
	"slices"
	"strings"
)

// Filter selects jobs: those of any of the states and of the queue, "" or none for all.
type Filter struct {
	States []string
	Queue  string
	Code   string // of the last failure
	Limit  int    // the newest so many; 0: all
}

// List is the jobs that f selects at m, the newest first, with what has become of them if m is of the past.
func (l *Ledger) List(f Filter, m Moment, past bool) (rows []Row) {
	now := l.jobs(l.Tail())
	for _, j := range slices.Backward(inOrder(l.jobs(m.Pos))) {
		switch {
		case f.Limit > 0 && len(rows) == f.Limit,
			len(f.States) > 0 && !slices.Contains(f.States, j.state),
			f.Queue != "" && f.Queue != j.queue,
			f.Code != "" && f.Code != j.code:
			continue
		}
		r := j.row()
		if past {
			r["state_now"] = now[j.id].state
		}
		rows = append(rows, r)
	}
	return rows
}

// Show is the job at m, followed by its events up to then; nothing if it was not enqueued yet.
func (l *Ledger) Show(id string, m Moment, past bool) (rows []Row) {
	j := l.jobs(m.Pos)[id]
	if j == nil {
		return nil
	}
	r := j.row()
	if past {
		r["state_now"] = l.jobs(l.Tail())[id].state
	}
	return append([]Row{r}, l.History(id, m)...)
}

// History is the events of the job up to m.
func (l *Ledger) History(id string, m Moment) (rows []Row) {
	for _, e := range l.Events {
		if e.Job == id && e.Pos <= m.Pos {
			rows = append(rows, e.line)
		}
	}
	return rows
}

// EventsOf is the events of the window, of one kind; "": of all.
func (l *Ledger) EventsOf(w Window, kind string) (rows []Row) {
	for _, e := range l.within(w) {
		if kind != "" && e.Kind != kind || !w.of(l.queues[e.Job]) {
			continue
		}
		rows = append(rows, e.line)
	}
	return rows
}

// Why explains the job's state at m from its own events, those of its queue, and the jobs that it waits for.
func (l *Ledger) Why(id string, m Moment) (rows []Row) {
	j := l.jobs(m.Pos)[id]
	if j == nil {
		return nil
	}
	r := Row{"job": j.id, "state": j.state, "queue": j.queue, "run_at": stamp(j.run), "cause": j.cause.line,
		"failures": float64(j.failures), "max_attempts": j.maxAttempts, "worker": some(j.owner.Name),
		"lease_expires_at": stamp(j.lease), "paused_since": nil, "paused_by": nil, "paused_reason": nil,
		"blocked_by": nil}
	if p := l.pauses(m)[j.queue]; p != nil && p.Kind == "queue_paused" && j.state == "queued" {
		r["paused_since"], r["paused_by"], r["paused_reason"] = stamp(p.At), some(p.Actor), some(p.text("reason"))
	}
	if by := l.blockedBy(j, m); j.state == "blocked" && len(by) > 0 {
		r["blocked_by"] = by
	}
	return []Row{r}
}

// blockedBy are the ids of the jobs that j waits for at m, the oldest first.
func (l *Ledger) blockedBy(j *job, m Moment) (ids []any) {
	jobs := l.jobs(m.Pos)
	met := func(reference string) bool {
		id, ending, _ := strings.Cut(reference, ":")
		parent := jobs[id]
		switch {
		case parent == nil:
			return true // it had left before j came
		case ending == "failed":
			return parent.state == "failed"
		case ending == "finished":
			return final(parent.state)
		}
		return parent.state == "succeeded"
	}
	for _, reference := range j.after {
		if !met(reference) {
			id, _, _ := strings.Cut(reference, ":")
			ids = append(ids, id)
		}
	}
	for _, parent := range inOrder(jobs) {
		for _, reference := range l.first[parent.id].list("before") {
			child, ending, _ := strings.Cut(reference, ":")
			if child == j.id && !met(strings.TrimSuffix(parent.id+":"+ending, ":")) {
				ids = append(ids, parent.id)
			}
		}
	}
	slices.SortStableFunc(ids, func(a, b any) int {
		return int(l.first[a.(string)].Pos - l.first[b.(string)].Pos)
	})
	return ids
}
