package event

import "time"

// JobID is a job's ULID as text: 26 characters of Crockford's base32.
type JobID string

// Worker is one worker process: the name that it was given and what distinguishes it from every other process
// of that name. Two workers are the same when all fields are equal.
type Worker struct {
	Name    string
	Boot    string // a ULID per process, so that a reused name is never a mistaken identity
	Host    string // of the worker
	PID     int    // of the worker's process
	Version string // the version of jobs that it takes; "": of those without one
}

// Event is one fact. Appended, it is never changed (I1).
type Event struct {
	Pos     int64     // place in the whole ledger: 1, 2, 3…
	Job     JobID     // "" where no job is concerned
	N       int64     // the job's number: the Pos of its enqueued event
	Seq     int64     // place within the job: 1, 2, 3…; 0 for what changes no state
	At      time.Time // UTC, whole microseconds
	Actor   string    // who acted: worker:…, sweeper:…, cli:user@host
	Worker  Worker    // the claim concerned; the zero Worker if none is
	Token   string    // the claim concerned; in refused, the token that was tried
	Attempt int       // the claim concerned; 0 if none is
	From    State
	To      State
	Body    Body
}

// Kind returns the kind of e's body.
func (e Event) Kind() Kind { return e.Body.Kind() }
