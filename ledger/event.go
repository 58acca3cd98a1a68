package ledger

import (
	"errors"
	"time"
)

// JobID is a job's ULID as text: 26 characters of Crockford's base32.
type JobID string

// Worker is one worker process: the name that it was given and what tells it from every other process of that
// name. Two workers are the same when all fields are equal.
type Worker struct {
	Name    string
	Boot    string // a ULID per process
	Host    string
	PID     int
	Version string // the version of jobs that it takes; "" takes jobs without a version
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

// Errors that callers branch on.
var (
	ErrConflict    = errors.New("ledger: conflict")                     // another write came first
	ErrUnknownKind = errors.New("ledger: unknown event kind")           // written by a newer program, or damaged
	ErrUnknown     = errors.New("ledger: commit outcome unknown")       // COMMIT failed: it may or may not be durable
	ErrBusy        = errors.New("ledger: busy")                         // the write lock did not come in time
	ErrFull        = errors.New("ledger: disk full")                    // nothing was written; reads go on
	ErrIO          = errors.New("ledger: input or output failed")       // of the disk, the file system or a limit of this process; it may pass
	ErrReadOnly    = errors.New("ledger: may only be read")             // by this process; nothing was written
	ErrAddress     = errors.New("ledger: not the address of a ledger")  // a DSN that Open does not understand
	ErrEngine      = errors.New("ledger: not with this database")       // what the other kind of ledger can do
	ErrNoLedger    = errors.New("ledger: no ledger")                    // there is no such file
	ErrNotALedger  = errors.New("ledger: not a ledger")                 // the file is something else; untouched
	ErrNewerSchema = errors.New("ledger: schema newer than program")    // written by a newer program; untouched
	ErrReplaced    = errors.New("ledger: file was replaced or removed") // under a live process; nothing was written
	ErrStray       = errors.New("ledger: stray file beside it")         // the -wal or -shm of another one; untouched
	ErrClosed      = errors.New("ledger: store is closed")
	ErrDamaged     = errors.New("ledger: damaged") // stored bytes that no version of this program wrote
)

// Micros returns t as UTC microseconds since 1970, the stored form; 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
