package ledger

import "time"

// What is usual is not stored, so that the events of an ordinary job are small: the columns say it. These values are
// part of what stored events mean, and never change.
const (
	usualLease       = time.Minute // of claimed and heartbeat, from the event's At
	usualMaxAttempts = 5           // of enqueued; and its run_at is the event's At
)

// withoutUsual returns b, the body of an event at that time, as it is stored.
func withoutUsual(b Body, at time.Time) Body {
	switch b := b.(type) {
	case *Enqueued:
		short := *b
		if b.RunAt.Equal(at) {
			short.RunAt = time.Time{}
		}
		if b.MaxAttempts == usualMaxAttempts {
			short.MaxAttempts = 0
		}
		return &short
	case *Claimed:
		if b.LeaseUntil.Equal(at.Add(usualLease)) {
			return &Claimed{MaxRuntime: b.MaxRuntime}
		}
	case *Heartbeat:
		if b.LeaseUntil.Equal(at.Add(usualLease)) {
			return &Heartbeat{Progress: b.Progress, Note: b.Note}
		}
	}
	return b
}

// addUsual completes b, the stored body of an event at that time.
func addUsual(b Body, at time.Time) {
	switch b := b.(type) {
	case *Enqueued:
		if b.RunAt.IsZero() {
			b.RunAt = at
		}
		if b.MaxAttempts == 0 {
			b.MaxAttempts = usualMaxAttempts
		}
	case *Claimed:
		if b.LeaseUntil.IsZero() {
			b.LeaseUntil = at.Add(usualLease)
		}
	case *Heartbeat:
		if b.LeaseUntil.IsZero() {
			b.LeaseUntil = at.Add(usualLease)
		}
	}
}
