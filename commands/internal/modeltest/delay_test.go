package modeltest

import (
	"slices"
	"time"

	"jobledger/ledger/event"
)

// modelDelay is a job that waits no more for parent, and must not begin before the command of parent has
// ended.
type modelDelay struct {
	child, parent *modelJob
	until         time.Time
	runAt         time.Time // when child was to run otherwise; zero: it still waits for others
}

// openUntil returns until when the command of the last claim of j may run; the zero time if it has ended.
func (m *model) openUntil(j *modelJob) (until time.Time) {
	if len(j.claims) == 0 || j.state != "cancelled" && j.state != "failed" {
		return until
	}
	if last := j.claims[len(j.claims)-1]; last.lost() && !last.stopped && last.until.After(m.Now) {
		return last.until
	}
	return until
}

// openHolder reports whether a job, other than but, had this key until it was cancelled, and its command may
// run.
func (m *model) openHolder(queue, key string, but *modelJob) bool {
	return slices.ContainsFunc(m.jobs, func(j *modelJob) bool {
		had := j.queue == queue && j.key == key && j.while == event.WhileUnfinished
		if j == but || !had || m.openUntil(j).IsZero() {
			return false
		}
		var cancelled *modelClaim
		for _, c := range j.claims {
			if c.ended == "cancelled" {
				cancelled = c
			}
		}
		return cancelled != nil && !cancelled.stopped && !cancelled.waived && cancelled.until.After(m.Now)
	})
}

func (m *model) delayBy(child, parent *modelJob) {
	until := m.openUntil(parent)
	if until.IsZero() {
		return
	}
	m.delays = slices.DeleteFunc(m.delays, func(d modelDelay) bool {
		return d.child == child && d.parent == parent
	})
	m.delays = append(m.delays, modelDelay{child: child, parent: parent, until: until})
}

// delaysOf returns the delays of child that hold.
func (m *model) delaysOf(child *modelJob) (found []modelDelay) {
	for _, d := range m.delays {
		if d.child == child && d.until.After(m.Now) {
			found = append(found, d)
		}
	}
	return found
}

func latest(list []modelDelay) (until time.Time) {
	for _, d := range list {
		if d.until.After(until) {
			until = d.until
		}
	}
	return until
}

// lift has the jobs run that waited only for the command of parent, which has ended.
func (m *model) lift(parent *modelJob) {
	var lifted []modelDelay
	m.delays = slices.DeleteFunc(m.delays, func(d modelDelay) bool {
		if d.parent == parent {
			lifted = append(lifted, d)
		}
		return d.parent == parent
	})
	for _, d := range lifted {
		child := d.child
		others := m.delaysOf(child)
		if child.state != "queued" || d.runAt.IsZero() || !child.runAt.Equal(latest(append(others, d))) {
			continue
		}
		at := m.Now
		for _, other := range append(others, modelDelay{until: d.runAt}) {
			if other.until.After(at) {
				at = other.until
			}
		}
		if at.Before(child.runAt) {
			m.stamp()
			child.runAt, child.seq = at, child.seq+1
		}
	}
}
