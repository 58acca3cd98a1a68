package oracletest

import (
	"slices"
	"time"
)

// job is what the events of a job add up to.
type job struct {
	id, queue, state string
	n, seq           int64 // n: the pos of its enqueued event
	enqueued         time.Time
	priority         float64
	run              time.Time // not claimed before
	ready            time.Time // since when it can be claimed, or when it will be; only while it is queued
	key, version     string
	tags, requires   any
	maxAttempts      float64
	maxRuntime       any
	group            string
	after            []string

	attempt, failures  int
	owner              Process
	claimed, beat      time.Time
	lease, ended       time.Time
	progress           any
	note, code, detail string
	exit, signal       any // of the last failure

	cause *Event // that led to its state
}

var (
	heldStates  = []string{"claimed", "running"}
	finalStates = []string{"succeeded", "failed", "cancelled"}
	allStates   = []string{"queued", "claimed", "running", "succeeded", "failed", "cancelled", "blocked"}
)

func held(state string) bool  { return slices.Contains(heldStates, state) }
func final(state string) bool { return slices.Contains(finalStates, state) }

// jobs are all jobs as they were right after the event pos, by id.
func (l *Ledger) jobs(pos int64) map[string]*job {
	if found := l.folded[pos]; found != nil {
		return found
	}
	jobs := make(map[string]*job)
	for _, e := range l.Events {
		if e.Pos > pos || e.Job == "" {
			continue
		}
		if e.Kind == "enqueued" {
			jobs[e.Job] = new(job)
		}
		if e.Seq > 0 {
			jobs[e.Job].add(e)
		}
	}
	l.folded[pos] = jobs
	return jobs
}

// inOrder are jobs, the oldest first.
func inOrder(jobs map[string]*job) (list []*job) {
	for _, j := range jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *job) int { return int(a.n - b.n) })
	return list
}

// causes are the kinds that lead to a state. Others leave it, or only change the time at which a job runs.
var causes = []string{"enqueued", "claimed", "succeeded", "failed", "released", "reclaimed", "cancelled",
	"retried", "unblocked"}

// add adds the next event of the job.
func (j *job) add(e *Event) {
	waited := j.state == "queued" && e.To == "queued"
	j.seq, j.state = e.Seq, e.To
	if slices.Contains(causes, e.Kind) {
		j.cause = e
	}
	switch e.Kind {
	case "enqueued":
		j.id, j.n, j.enqueued, j.queue = e.Job, e.Pos, e.At, e.text("queue")
		j.priority, j.run = e.number("priority"), e.time("run_at")
		j.key, j.version = e.text("key"), e.text("version")
		j.tags, j.requires = e.Data["tags"], e.Data["requires"]
		j.maxAttempts, j.maxRuntime, j.group = e.number("max_attempts"), e.Data["max_runtime"], e.text("group")
		j.after = e.list("after")
	case "claimed":
		j.attempt, j.owner = e.Attempt, e.claim.Process
		j.claimed, j.beat, j.lease = e.At, e.At, e.time("lease_until")
	case "heartbeat":
		j.beat, j.lease = e.At, e.time("lease_until")
		if e.Data["progress"] != nil {
			j.progress = e.Data["progress"]
		}
		if e.text("note") != "" {
			j.note = e.text("note")
		}
	case "taken_over":
		j.owner, j.beat, j.lease = e.process(), e.At, e.time("lease_until")
	case "succeeded":
		j.code, j.detail = "", ""
		j.end(e.At)
	case "failed", "reclaimed":
		j.failures++
		j.code, j.detail = e.text("error_code"), e.text("error_detail")
		if e.Kind == "reclaimed" {
			j.code, j.detail = e.text("reason"), ""
		}
		j.exit, j.signal = e.Data["exit_code"], e.Data["signal"]
		if retry := e.time("retry_at"); retry.IsZero() {
			j.end(e.At)
		} else {
			j.again(retry)
		}
	case "released":
		j.again(e.time("run_at"))
	case "cancelled":
		j.end(e.At)
	case "retried":
		run := e.time("run_at")
		if run.IsZero() {
			run = e.At
		}
		j.again(run)
		j.failures, j.ended, j.code, j.detail = 0, time.Time{}, "", ""
		if d := e.Data["max_runtime"]; d != nil {
			j.maxRuntime = d
		}
	case "unblocked":
		if j.state == "queued" && j.run.Before(e.At) {
			j.run = e.At
		}
	case "edited":
		if n := e.number("max_attempts"); n > 0 {
			j.maxAttempts = n
		}
		if d := e.Data["max_runtime"]; d != nil {
			j.maxRuntime = d
		}
		if list := e.Data["requires"]; list != nil {
			j.requires = list
		}
	case "rescheduled":
		j.run, j.priority = e.time("run_at"), e.number("priority")
	}
	if !waited || j.ready.After(e.At) || j.run.After(e.At) { // else it was ready, and still is
		j.ready = j.run
	}
}

// end keeps the owner of the last claim.
func (j *job) end(at time.Time) { j.ended, j.lease = at, time.Time{} }

// again queues the job: it has no owner.
func (j *job) again(run time.Time) {
	j.run, j.owner, j.claimed, j.beat, j.lease = run, Process{}, time.Time{}, time.Time{}, time.Time{}
	j.progress, j.note = nil, ""
}

// row is the job as list prints it.
func (j *job) row() Row {
	r := Row{"id": j.id, "job": j.id, "seq": float64(j.seq), "state": j.state, "queue": j.queue,
		"priority": j.priority, "run_at": stamp(j.run), "key": some(j.key), "tags": j.tags,
		"attempt": float64(j.attempt), "failures": float64(j.failures), "max_attempts": j.maxAttempts,
		"max_runtime": j.maxRuntime, "version": some(j.version), "requires": j.requires,
		"worker": some(j.owner.Name), "claimed_at": stamp(j.claimed), "heartbeat_at": stamp(j.beat),
		"lease_expires_at": stamp(j.lease), "progress": j.progress, "note": some(j.note),
		"finished_at": stamp(j.ended), "error_code": some(j.code), "error_detail": some(j.detail),
		"group": some(j.group), "exit_code": nil, "signal": nil}
	if j.code != "" {
		r["exit_code"], r["signal"] = j.exit, j.signal
	}
	return r
}
