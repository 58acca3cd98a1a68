package commands

import (
	"time"

	"jobledger/commands/internal/check"
	"jobledger/ledger/event"
)

// The limits of what a job, a queue or a name may be. Sizes are in bytes.
const (
	MaxPayload     = check.MaxPayload     // 1 MiB: of a payload, and of a result
	MaxErrorDetail = check.MaxErrorDetail // 8 KiB
	MaxKey         = check.MaxKey         // 255
	MaxQueue       = check.MaxQueue       // 64
	MaxTags        = check.MaxTags        // 32
	MaxLabels      = check.MaxLabels      // 16
	MaxLabel       = check.MaxLabel       // 64: of a version, a capability or an error code
	MaxTag         = check.MaxTag         // 255
	MaxReason      = check.MaxReason      // 1 KiB
	MaxActor       = check.MaxActor       // 1 KiB
	MaxPriority    = check.MaxPriority    // 100, and -100
	MaxMaxAttempts = check.MaxMaxAttempts // 1,000,000
	MinLease       = check.MinLease       // 1 s
	MaxLease       = check.MaxLease       // 24 h
	MaxRunTime     = check.MaxRunTime     // 366 days
	DefaultLease   = check.DefaultLease   // 1 min
)

// invalid is p as an error; nil if p is nil.
func invalid(p *check.Problem) error {
	if p == nil {
		return nil
	}
	return (*InvalidError)(p)
}

// CheckSize returns an InvalidError for a payload or result of more than MaxPayload bytes.
func CheckSize(field string, content []byte) error { return invalid(check.Size(field, content)) }

// CheckQueue returns an InvalidError unless name is valid as the name of a queue.
func CheckQueue(name string) error { return invalid(check.Queue(name)) }

// CheckLabel returns an InvalidError unless text is valid as a version, a capability or an error code:
// printable ASCII without spaces, because these are parts of a lane.
func CheckLabel(field, text string) error { return invalid(check.Label(field, text)) }

// CheckActor returns an InvalidError unless actor is valid as the name of an actor. Import accepts the same
// names, so that a ledger can always import what it exports. Roles are valid names: a worker acts as
// "worker:" and its Process.Name, a sweeper as "sweeper:" and a name. A program that takes the name from a
// person or a request must refuse those too, with ReservedActor.
func CheckActor(actor string) error { return invalid(check.Actor(actor)) }

// ReservedActor returns the reserved prefix of actor: worker:, sweeper:, schedule:, http:, unix: or inbox:;
// "" if it has none. Capitals, and what cannot be seen before the name, make no other name of it.
func ReservedActor(actor string) string { return check.ReservedActor(actor) }

// ReservedLabel returns an InvalidError if labels has one that begins with event.LabelReserved. A program
// that takes what jobs require, or workers have, from a person or a request must refuse those.
func ReservedLabel(field string, labels []string) error {
	return invalid(check.Reserved(field, labels))
}

// CheckWorker returns an InvalidError unless w identifies a worker process.
func CheckWorker(w event.Worker) error { return invalid(check.Worker(w)) }

// CheckText returns an InvalidError unless text is UTF-8 without NUL of at most so many bytes.
func CheckText(field, text string, most int) error { return invalid(check.Text(field, text, most)) }

// CheckLease returns an InvalidError unless d is valid as a lease.
func CheckLease(d time.Duration) error { return invalid(check.Lease(d)) }

// Detail makes any text an error detail: valid UTF-8 without NUL, and of a long text the end, which usually
// holds the cause.
func Detail(text string) string { return check.Detail(text) }
