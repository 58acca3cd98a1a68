package event

import (
	"cmp"
	"time"
)

// Implicit defaults are not stored, which keeps the events of an ordinary job small. They are part of the
// meaning of stored events and never change.
const (
	defaultLease       = time.Minute // of claimed and heartbeat, from the event's At
	defaultMaxAttempts = 5           // of enqueued, whose run_at is the event's At
)

// OmitDefaults returns b, the body of an event at that time, without the values that are implied.
func OmitDefaults(b Body, at time.Time) Body {
	switch b := b.(type) {
	case *Enqueued:
		short := *b
		if b.RunAt.Equal(at) {
			short.RunAt = time.Time{}
		}
		if b.MaxAttempts == defaultMaxAttempts {
			short.MaxAttempts = 0
		}
		return &short
	case *Claimed:
		if b.LeaseUntil.Equal(at.Add(defaultLease)) {
			return &Claimed{MaxRuntime: b.MaxRuntime, Limited: b.Limited}
		}
	case *Heartbeat:
		if b.LeaseUntil.Equal(at.Add(defaultLease)) {
			return &Heartbeat{Progress: b.Progress, Note: b.Note, CannotEnd: b.CannotEnd}
		}
	}
	return b
}

// AddDefaults completes b, the stored body of an event at that time.
func AddDefaults(b Body, at time.Time) {
	switch b := b.(type) {
	case *Enqueued:
		if b.RunAt.IsZero() {
			b.RunAt = at
		}
		b.MaxAttempts = cmp.Or(b.MaxAttempts, defaultMaxAttempts)
	case *Claimed:
		if b.LeaseUntil.IsZero() {
			b.LeaseUntil = at.Add(defaultLease)
		}
	case *Heartbeat:
		if b.LeaseUntil.IsZero() {
			b.LeaseUntil = at.Add(defaultLease)
		}
	}
}
