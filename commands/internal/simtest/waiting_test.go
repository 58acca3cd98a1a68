package simtest

import (
	"errors"
	"maps"
	"slices"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// waiting is what the oracle knows of a job that waits for others, is held, or has a key that is not for
// ever.
type waiting struct {
	blocked bool
	held    bool                         // by an operator's hold
	after   map[event.JobID]event.Ending // what it waits for and has not come about
	because event.JobID                  // it was cancelled because of this job
	key     string                       // with unique
	unique  string                       // how long its key is its own; "": for ever
	keyFree bool                         // it was claimed, or ended, and the key is its own no more
	digest  string                       // of its payload
}

// broken returns a job whose end cannot be what j waits for.
func (o *oracle) broken(j *simJob) (parent event.JobID, is bool) {
	for _, id := range slices.Sorted(maps.Keys(j.after)) {
		if p := o.jobs[id]; p.ended != 0 && !j.after[id].Meets(p.ended) {
			return id, true
		}
	}
	return "", false
}

// waits reads from the event of a new job what it waits for, and what is to wait for it.
func (o *oracle) waits(j *simJob, b *event.Enqueued) {
	j.waiting = waiting{blocked: b.Blocked, held: b.Hold, key: b.Key, unique: b.UniqueWhile,
		after: make(map[event.JobID]event.Ending), digest: b.PayloadSHA256}
	for _, text := range b.After {
		id, on, err := event.ParseReference(text)
		parent := o.jobs[id]
		switch {
		case err != nil || parent == nil:
			o.sim.find("no such job", "job %s is to wait for %s: %v", j.id, text, err)
		case !on.Meets(parent.ended):
			j.after[id] = on
		}
	}
	for _, text := range b.Before {
		id, on, err := event.ParseReference(text)
		child := o.jobs[id]
		switch {
		case err != nil || child == nil:
			o.sim.find("no such job", "%s is to wait for job %s: %v", text, j.id, err)
		case !child.blocked:
			o.sim.find("transition", "job %s, which is not blocked, is to wait for job %s", id, j.id)
		default:
			child.after[j.id] = on
		}
	}
	if waits := j.held || len(j.after) > 0; waits != j.blocked {
		o.sim.find("blocked", "job %s: blocked is %t, and it waits for %v, held %t", j.id, j.blocked, j.after,
			j.held)
	}
	o.keyed(j)
}

// keyed checks that no other job has the key of j, which is to have it.
func (o *oracle) keyed(j *simJob) {
	if j.unique == "" {
		return
	}
	j.keyFree = false
	for _, other := range o.jobs {
		if other != j && other.unique != "" && other.queue == j.queue && other.key == j.key && !other.keyFree {
			o.sim.find("two with one key", "jobs %s and %s, key %q of queue %s", other.id, j.id, j.key, j.queue)
		}
	}
	o.sim.counts["keys taken"]++
}

// passOn brings the end of a job to those that wait for it.
func (o *oracle) passOn(j *simJob) {
	j.keyFree = true
	for _, child := range o.jobs {
		if on, waits := child.after[j.id]; waits && on.Meets(j.ended) {
			delete(child.after, j.id)
		}
	}
}

// unwait lets j wait for nothing any more.
func (o *oracle) unwait(j *simJob) {
	clear(j.after)
	j.held = false
}

// unblocked checks that j was blocked, and that it still is if something is left that it waits for.
func (o *oracle) unblocked(j *simJob, b *event.Unblocked) {
	if b.Hold {
		if !j.held {
			o.sim.find("transition", "job %s: a hold is lifted that it does not have", j.id)
		}
		j.held = false
	}
	rest := j.held || len(j.after) > 0
	switch {
	case !j.blocked:
		o.sim.find("transition", "job %s: unblocked and was not blocked", j.id)
	case rest != b.Blocked:
		o.sim.find("blocked", "job %s: unblocked, blocked is %t, and it waits for %v, held %t", j.id, b.Blocked,
			j.after, j.held)
	}
	j.blocked = rest
}

// cancelled checks the reason of a cancel that followed from another job.
func (o *oracle) cancelled(j *simJob, b *event.Cancelled) {
	parent := o.jobs[b.Because]
	on, waits := j.after[b.Because]
	switch {
	case b.Because == "":
		o.unwait(j)
	case !j.blocked && j.because == "":
		o.sim.find("transition", "job %s: cancelled because of job %s and was not blocked", j.id, b.Because)
	case j.blocked && (parent == nil || !waits || parent.ended == 0 || on.Meets(parent.ended)):
		o.sim.find("cascade", "job %s: cancelled because of job %s, which has not failed it", j.id, b.Because)
	}
	j.because, j.blocked = b.Because, false
}

// retried checks the retry of a job that was cancelled because of another.
func (o *oracle) retried(j *simJob, e event.Event, b *event.Retried) {
	switch {
	case b.Because == "":
		o.unwait(j) // it runs, whatever it waited for
	case j.because == "" || e.To != event.Blocked:
		o.sim.find("cascade", "job %s: waits again because of job %s, and it was not cancelled so", j.id, b.Because)
	}
	if j.blocked = e.To == event.Blocked; b.KeyTaken {
		o.unwait(j) // it is cancelled again by the next event
		return
	}
	j.because = ""
	o.keyed(j)
}

// waitsInVain checks, between transactions, that no job is blocked that waits for nothing, or for what cannot
// come about, and that none is cancelled because of a job that is to run once more.
func (o *oracle) waitsInVain() {
	for _, j := range o.jobs {
		parent, broken := o.broken(j)
		switch {
		case j.blocked && !j.held && len(j.after) == 0:
			o.sim.find("left blocked", "job %s waits for nothing", j.id)
		case j.blocked && broken:
			o.sim.find("left blocked", "job %s waits for job %s, which is %s", j.id, parent, o.jobs[parent].ended)
		case j.because != "" && len(j.after) > 0 && !broken:
			o.sim.find("not healed", "job %s is cancelled because of job %s", j.id, j.because)
		}
	}
}

// drawWaiting lets e wait for other jobs, or another one for it, or gives it a key that others use too.
func (c *simClient) drawWaiting(p *process, e *commands.Enqueue) {
	ending := func() event.Ending {
		return oneOf(p.rng, event.OnSucceeded, event.OnSucceeded, event.OnFailed, event.OnFinished)
	}
	if p.chance(0.25) {
		e.UniqueWhile = oneOf(p.rng, event.WhileQueued, event.WhileUnfinished)
		e.Key = "the one " + e.UniqueWhile
		e.OnDuplicate = oneOf(p.rng, "", commands.IgnoreDuplicate, commands.ReplaceDuplicate)
	}
	if len(c.known) == 0 {
		return
	}
	for range p.rng.IntN(3) {
		id := oneOf(p.rng, c.known...)
		if !slices.ContainsFunc(e.After, func(d commands.Dependency) bool { return d.Job == id }) && p.chance(0.5) {
			e.After = append(e.After, commands.Dependency{Job: id, On: ending()})
		}
	}
	e.Hold = p.chance(0.1)
	var blocked []event.JobID
	for _, id := range c.known {
		if p.oracle.jobs[id].blocked {
			blocked = append(blocked, id)
		}
	}
	if len(blocked) > 0 && p.chance(0.2) {
		e.Before = []commands.Dependency{{Job: oneOf(p.rng, blocked...), On: ending()}}
	}
}

// mayConflict reports whether another job can be in the way of one of these: it has the key and cannot take
// the payload, or it waits no more.
func mayConflict(jobs []commands.Enqueue) bool {
	return slices.ContainsFunc(jobs, func(e commands.Enqueue) bool {
		return e.OnDuplicate == commands.ReplaceDuplicate || len(e.Before) > 0
	})
}

// letRun lifts all holds, so that all jobs can end.
func (c *simClient) letRun(p *process) {
	for _, id := range slices.Sorted(maps.Keys(p.oracle.jobs)) {
		if !p.oracle.jobs[id].held {
			continue
		}
		_, err := p.service.Apply(p.t.Context(), "cli:operator", id, commands.Unblock{})
		if err != nil && !errors.Is(err, commands.ErrConflict) {
			p.find("answer", "unblock: %v", err)
		}
	}
}
