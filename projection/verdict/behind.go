package verdict

import (
	"time"

	"jobledger/projection/status"
)

// Thresholds of what waits.
const (
	late     = time.Minute      // for which jobs may wait in any queue: workers poll, and commands take time
	tooLate  = 10 * time.Minute // people have noticed by now
	lateNew  = 5 * time.Minute  // where it is not known what is normal: a peak may be
	beyond   = 5                // times as long as normal: queues have peaks
	known    = 60               // minutes of which it must be known what happened, for something to be normal
	young    = 180              // minutes: of so short a time the highest peak may not be known
	progress = 3                // minutes, of which claims and arrivals are compared
	burst    = 0.8              // of the jobs of ten minutes came in one of them: a batch
	drained  = 2 * time.Hour    // within which a backlog may be claimed that becomes smaller
)

// behind finds jobs that have waited for longer than is normal in their queue.
func (f Facts) behind(q status.Queue, c course) *Problem {
	since := q.OldestReady
	limited := f.limitOf(q.Name)
	if first, asked := f.Claimable[q.Name]; asked {
		if since = first; first.IsZero() {
			since = q.OldestReady
		}
	}
	wait := f.At.Sub(since)
	if q.Paused || since.IsZero() || wait < late {
		return nil
	}
	normal, claims := normalWait(c.before(known))
	least := max(late, beyond*normal)
	short := c.now-c.since < known
	if short || claims < few {
		normal, least = 0, lateNew
	} else if c.now-c.since < young {
		least = max(least, lateNew)
	}
	p := &Problem{Code: Behind, Level: Warning, Jobs: q.Ready, Since: since, Normal: normal}
	sum := c.last(progress)
	p.Idle = held(q) == 0 && c.last(quick).claimed == 0
	if (wait < least || short && c.part) && !p.Idle {
		return nil
	}
	if wait >= tooLate {
		p.Level = Trouble
	}
	if gain := sum.claimed - sum.arrived; gain > 0 {
		p.ClearIn = time.Duration(float64(q.Ready) / float64(gain) * float64(progress*time.Minute))
	} else if sum.claimed > 0 && c.burst() {
		p.ClearIn = time.Duration(float64(q.Ready) / float64(sum.claimed) * float64(progress*time.Minute))
	}
	p.Limit = binds(limited, f.Claimable, q, c)
	if p.Limit || p.ClearIn > 0 && p.ClearIn <= drained {
		p.Level = Note
	}
	return p
}

// burst reports whether most jobs of the last ten minutes came in one of them.
func (c course) burst() bool {
	most := int64(0)
	for i := len(c.spans) - 1; i >= 0 && c.spans[i].at > c.now-window; i-- {
		most = max(most, c.spans[i].arrived)
	}
	return float64(most) >= burst*float64(c.last(window).arrived)
}

// binds reports whether a limit is why jobs of q wait.
func binds(l *status.Limited, claimable map[string]time.Time, q status.Queue, c course) bool {
	if l == nil {
		return false
	}
	if first, asked := claimable[q.Name]; asked && first.IsZero() {
		return true // each group with a job has all that it may have
	}
	if l.Running > 0 && 4*l.Live >= 3*int64(l.Running) { // a slot is free for the moment between two jobs
		return true
	}
	if l.Rate.N == 0 {
		return false
	}
	started := float64(c.last(quick).claimed) / quick
	return started >= 0.5*float64(l.Rate.N)*float64(time.Minute)/float64(l.Rate.Per)
}
