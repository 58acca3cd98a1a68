package modeltest

import (
	"slices"

	"pgregory.net/rapid"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// modelEdge is something that a job waits for.
type modelEdge struct {
	parent *modelJob // nil: an operator, who lifts a hold
	on     event.Ending
	broken bool // parent has ended in another way
}

// met reports whether parent has ended as it is waited for.
func (e modelEdge) met() bool {
	if e.parent == nil || !e.parent.final() {
		return false
	}
	return e.on == event.OnFinished || e.on == event.OnSucceeded && e.parent.state == "succeeded" ||
		e.on == event.OnFailed && e.parent.state == "failed"
}

func (j *modelJob) cannotRun() bool {
	return slices.ContainsFunc(j.after, func(e modelEdge) bool { return e.broken })
}

// drawWaiting lets e wait for other jobs, which may be earlier ones of the same call, or for an operator, or
// another job for it.
func (m *model) drawWaiting(e *commands.Enqueue, earlier []commands.Enqueue) {
	e.Hold = rapid.IntRange(0, 3).Draw(m.rt, "hold") == 3
	var ids []event.JobID
	for _, j := range m.jobs {
		ids = append(ids, event.JobID(j.id))
	}
	for _, other := range earlier {
		ids = append(ids, event.JobID(other.ID))
	}
	if len(ids) == 0 {
		return
	}
	ending := rapid.SampledFrom([]event.Ending{0, event.OnSucceeded, event.OnFailed, event.OnFinished})
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, min(2, len(ids)), rapid.ID)
	for _, id := range some.Draw(m.rt, "after") {
		e.After = append(e.After, commands.Dependency{Job: id, On: ending.Draw(m.rt, "on")})
	}
	if rapid.IntRange(0, 2).Draw(m.rt, "before") != 2 {
		return
	}
	var waiting []event.JobID
	for _, j := range m.jobs {
		if len(j.after) > 0 {
			waiting = append(waiting, event.JobID(j.id))
		}
	}
	if len(waiting) == 0 || rapid.IntRange(0, 9).Draw(m.rt, "any") == 9 {
		waiting = ids
	}
	some = rapid.SliceOfNDistinct(rapid.SampledFrom(waiting), 0, min(2, len(waiting)), rapid.ID)
	for _, id := range some.Draw(m.rt, "children") {
		e.Before = append(e.Before, commands.Dependency{Job: id, On: ending.Draw(m.rt, "on")})
	}
}

// judgeWaiting adds j, the job of e, with what waits. Nothing is added where a job could wait for itself, or
// one is to wait that does not. named returns the job of an id.
func (m *model) judgeWaiting(j *modelJob, e commands.Enqueue, named func(event.JobID) *modelJob) bool {
	var delays []modelDelay
	parents, children := make(map[*modelJob]event.Ending), make(map[*modelJob]event.Ending)
	if e.Hold {
		j.after = append(j.after, modelEdge{})
	}
	for _, d := range e.After {
		edge := modelEdge{parent: named(d.Job), on: max(d.On, event.OnSucceeded)}
		if on, twice := parents[edge.parent]; twice && on == edge.on {
			continue
		} else if twice {
			return false
		}
		parents[edge.parent] = edge.on
		if edge.met() {
			if until := m.openUntil(edge.parent); !until.IsZero() {
				delays = append(delays, modelDelay{child: j, parent: edge.parent, until: until})
			}
			continue
		}
		edge.broken = edge.parent.final()
		j.after = append(j.after, edge)
	}
	for _, d := range e.Before {
		child, on := named(d.Job), max(d.On, event.OnSucceeded)
		if before, twice := children[child]; twice && before != on || len(child.after) == 0 {
			return false
		}
		for parent := range parents {
			if parent.waitsFor(child) {
				return false
			}
		}
		children[child] = on
	}
	for child, on := range children {
		child.after = append(child.after, modelEdge{parent: j, on: on})
	}
	m.stamp()
	m.jobs = append(m.jobs, j)
	if len(j.after) > 0 {
		j.state = "blocked"
	}
	if until := latest(delays); j.state != "blocked" && until.After(j.runAt) {
		for i := range delays {
			delays[i].runAt = j.runAt
		}
		j.runAt = until
	}
	m.delays = append(m.delays, delays...)
	if j.cannotRun() {
		m.stamp()
		j.end("", nil, "cancelled", m.Now)
	}
	m.propagate()
	return true
}

// waitsFor reports whether j is other, or waits for it, also by way of others.
func (j *modelJob) waitsFor(other *modelJob) bool {
	return j == other || slices.ContainsFunc(j.after, func(e modelEdge) bool {
		return e.parent != nil && e.parent.waitsFor(other)
	})
}

// news is that a job has ended, or is to run once more.
type news struct {
	of    *modelJob
	again bool
}

// propagate brings what has happened to jobs to those that wait for them, and so on down.
func (m *model) propagate() {
	for len(m.unread) > 0 {
		n := m.unread[0]
		m.unread = m.unread[1:]
		for _, child := range m.jobs {
			i := slices.IndexFunc(child.after, func(e modelEdge) bool { return e.parent == n.of })
			if i >= 0 && (n.again || !child.after[i].broken) {
				m.learn(child, i)
			}
		}
	}
}

// learn carries out what has become of the parent of an edge of child.
func (m *model) learn(child *modelJob, i int) {
	edge := &child.after[i]
	met := edge.met()
	edge.broken = edge.parent.final() && !met
	if met {
		m.delayBy(child, edge.parent)
		child.after = slices.Delete(child.after, i, i+1)
	}
	switch {
	case child.state == "blocked" && child.cannotRun():
		m.stamp()
		child.end("", nil, "cancelled", m.Now)
	case child.state == "blocked" && len(child.after) == 0:
		m.unblocked(child)
	case child.state == "cancelled" && !child.cannotRun():
		m.stamp()
		child.failures, child.snoozes = 0, 0
		if child.while != "" && m.holder(child.queue, child.key) != nil {
			m.stamp() // it is cancelled once more
			child.seq += 2
			child.after = nil
			return
		}
		child.state, child.runAt, child.keyFree = "blocked", m.ats[len(m.ats)-1], false
		child.seq++
		m.unread = append(m.unread, news{child, true})
	}
}

// unblocked queues j, which waits for nothing any more.
func (m *model) unblocked(j *modelJob) {
	at := m.stamp()
	j.state, j.seq = "queued", j.seq+1
	if j.runAt.Before(at) {
		j.runAt = at
	}
	if until := latest(m.delaysOf(j)); until.After(j.runAt) {
		for i := range m.delays {
			if m.delays[i].child == j {
				m.delays[i].runAt = j.runAt
			}
		}
		m.stamp()
		j.runAt, j.seq = until, j.seq+1
	}
}

// judgeUnblock lifts the hold of j.
func (m *model) judgeUnblock(j *modelJob) error {
	i := slices.IndexFunc(j.after, func(e modelEdge) bool { return e.parent == nil })
	if j.state != "blocked" || i < 0 {
		return commands.ErrConflict
	}
	if j.after = slices.Delete(j.after, i, i+1); len(j.after) == 0 {
		m.unblocked(j)
		return nil
	}
	m.stamp()
	j.seq++
	return nil
}
