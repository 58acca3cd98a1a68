package verdict

import (
	"slices"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// OfQueue returns what the rules find about q alone at now, without what it did before.
func OfQueue(q status.Queue, now time.Time) []Problem {
	return merge(Facts{At: now}.ofQueue(q))
}

// ofQueue returns what the rules find about how q stands.
func (f Facts) ofQueue(q status.Queue) (found []Problem) {
	if q.Paused {
		p := Problem{Level: Warning, Queue: q.Name, Pause: q.Queue, Jobs: q.Ready, Since: q.Since}
		if q.Ready > 0 {
			p.Code = Paused
		}
		found = append(found, p)
	}
	if q.Expired > 0 {
		p := Problem{Code: Leases, Level: Note, Queue: q.Name, Jobs: q.Expired, Since: q.OldestLease}
		if q.Overdue > 0 {
			p.Level = Trouble
		}
		found = append(found, p)
	}
	if len(q.Lost) > 0 {
		p := Problem{Level: Note, Queue: q.Name, Jobs: int64(len(q.Lost)), Commands: q.Lost,
			Since: q.Lost[0].EndedAt}
		if slices.ContainsFunc(q.Lost, func(c projection.LostClaim) bool { return c.CannotEnd != "" }) {
			p.Level = Warning // a user has to end it
		}
		found = append(found, p)
	}
	for _, s := range q.Stranded {
		found = append(found, Problem{Code: Stranded, Level: Trouble, Queue: q.Name, Jobs: s.Jobs, Since: s.Since,
			Stranded: s})
	}
	if f.Recent == nil && len(q.Stranded) == 0 && held(q) == 0 && waited(q, f.At) >= late {
		found = append(found, Problem{Code: Behind, Level: Warning, Queue: q.Name, Jobs: q.Ready,
			Since: q.OldestReady, Idle: true})
	}
	return found
}

// silent finds the workers that show no life and did not report their end.
func (f Facts) silent() (found []Problem) {
	p := Problem{Code: Silent, Level: Warning}
	for _, w := range f.Workers {
		if w.State != status.Silent || len(w.Jobs) == 0 && f.replaced(w) {
			continue
		}
		p.Workers = append(p.Workers, w)
		if p.Jobs += int64(len(w.Jobs)); p.Jobs > 0 {
			p.Level = Trouble
		}
		if p.Since.IsZero() || w.SeenAt.Before(p.Since) {
			p.Since = w.SeenAt
		}
	}
	if len(p.Workers) > 0 {
		found = append(found, p)
	}
	return found
}

// replaced reports whether another worker does the work of w, which fell silent: one that started later and
// serves its queues.
func (f Facts) replaced(w status.Worker) bool {
	return slices.ContainsFunc(f.Workers, func(o status.Worker) bool {
		return (o.State == status.Working || o.State == status.Idle) && o.StartedAt.After(w.SeenAt) &&
			(o.Name == w.Name && o.Host == w.Host || len(w.Queues) > 0 && slices.Equal(o.Queues, w.Queues))
	})
}

// unmoved is for how long rows of the inbox may wait until they are noticed: a worker looks each second.
const unmoved = 5 * time.Second

// inbox finds the rows that no process makes jobs, and those of which the ledger takes no job.
func (f Facts) inbox() (found []Problem) {
	if f.Inbox.Refused > 0 {
		found = append(found, Problem{Code: Inbox, Level: Warning, Jobs: f.Inbox.Refused,
			Since: f.Refused.RefusedAt(), Refused: f.Refused})
	}
	age := f.Inbox.Age(f.At)
	if age < unmoved {
		return found
	}
	p := Problem{Code: Inbox, Level: Note, Jobs: f.Inbox.Waiting, Since: f.At.Add(-age)}
	switch {
	case age >= tooLate:
		p.Level = Trouble
	case age >= late:
		p.Level = Warning
	}
	return append(found, p)
}

// notTicked is for how long a schedule may be due: the processes that tick look every few seconds.
const notTicked = 2 * time.Minute

// schedule finds a schedule that is not carried out, or whose last job failed for good. found are the
// problems of queues, which may include it already.
func (f Facts) schedule(t Timetable, found []Problem) []Problem {
	p := Problem{Code: Schedule, Level: Trouble, Schedule: t.Schedule}
	switch {
	case !t.Next.IsZero() && f.At.Sub(t.Next) > notTicked:
		p.Since = t.Next
	case t.Last.N != 0 && t.Last.State == event.FailedState:
		p.LastJob, p.Since = t.Last, t.Last.FinishedAt
		for i := range found {
			switch o := &found[i]; {
			case o.Queue != t.Spec.Queue:
			case o.Code == Failing && o.Level >= Warning:
				o.Also = append(o.Also, Schedule)
				return nil
			case o.Code == GaveUp && o.Jobs == 1:
				p.Also = append(o.Also, GaveUp)
				*o = p
				return nil
			}
		}
	case t.Skipped > 1 && !t.Paused:
		p.Level, p.Skipped, p.Since = Warning, t.Skipped, t.Since
	default:
		return nil
	}
	return []Problem{p}
}
