package follow

import (
	"time"

	"jobledger/ledger/event"
)

// Ready says since when a job has been ready: queued, with its time come, so that only a worker was missing.
// A job that becomes queued is ready from then on, or from its time on where that is later. It stays ready
// while it is queued and its time is not moved into the future; a new priority or payload does not change
// that. The zero value stands for a job that is not enqueued yet. It is pure: both the numbers of now and
// those of the past are computed with it from the events of a job.
type Ready struct{ since, due int64 }

// Add adds the next transition of the job, at a time in microseconds. due is when the event says that the job
// is to run, see [DueOf]; 0: it does not say that.
func (r *Ready) Add(from, to event.State, at, due int64) {
	if due > 0 {
		r.due = due
	}
	switch {
	case to != event.Queued:
		r.since = 0
	case from == event.Queued && r.since <= at && r.due <= at: // it was ready, and still is
	default:
		r.since = max(at, r.due)
	}
}

// At returns when the job became ready, or will, in microseconds; 0: it is not queued.
func (r *Ready) At() int64 { return r.since }

// DueOf returns the time, in microseconds, at which e lets its job run; 0: e has no such time.
func DueOf(e event.Event) int64 {
	var due time.Time
	switch b := e.Body.(type) {
	case *event.Enqueued:
		due = b.RunAt
	case *event.Failed:
		due = b.RetryAt
	case *event.Released:
		due = b.RunAt
	case *event.Reclaimed:
		due = b.RetryAt
	case *event.Retried:
		due = b.RunAt
	case *event.Rescheduled:
		due = b.RunAt
	}
	return dueOf(e.Kind(), event.Micros(due), event.Micros(e.At))
}

// dueOf is DueOf of an event at a time, in whose stored form the time is due, 0 where that has none: the one
// place that fills in the defaults.
func dueOf(kind event.Kind, due, at int64) int64 {
	if due == 0 && kind.RunsAtOnce() {
		return at
	}
	return due
}
