package projection

import (
	"time"

	"jobledger/ledger/event"
)

// Job is the state of a job, derived from its events.
type Job struct {
	N     int64 // the pos of its enqueued event
	ID    event.JobID
	Seq   int64 // of the last event that changed it
	State event.State

	Queue       string
	Priority    int
	RunAt       time.Time
	Key         string
	UniqueWhile string // how long Key is its own: event.WhileQueued or WhileUnfinished; "": for ever
	KeyFree     bool   // with UniqueWhile: the job does not have Key any more, and another one may
	Group       string // "": none
	Tags        map[string]string
	MaxAttempts int
	MaxRuntime  time.Duration // as enqueued, or as an operator said since; 0: none
	Version     string        // "": any worker
	Requires    []string
	After       []string      // the jobs that it was to wait for when it was enqueued, as the event has them
	Backoff     event.Backoff // as enqueued, or edited; zero: event.DefaultBackoff
	Form        string        // of the payload: event.FormArgv, or ""
	Schedule    string        // whose job it is; "": of none
	Tick        time.Time     // the moment of the schedule that it is for; zero: none

	Attempt  int // numbers claims; never reused
	Failures int // claims that failed or were reclaimed since the job was last retried by an operator
	Snoozes  int // claims that asked to be run later since then

	Worker      event.Worker // the owner; after the end, the last one
	Token       string       // of the live claim; "": none
	Limited     bool         // limits of the queue were in force when the live claim began
	ClaimedAt   time.Time
	HeartbeatAt time.Time
	LeaseUntil  time.Time // zero: no live claim
	EndBy       time.Time // ClaimedAt + the max runtime in force; zero: none
	FinishedAt  time.Time

	Progress    *float64
	Note        string
	CannotEnd   string // which process of the live claim cannot be ended, and why; "": none
	ErrorCode   string // of the last failure
	ErrorDetail string
	Erased      bool // payload and results were erased

	PayloadAt int64 // the pos of the replaced event that has its payload; 0: the enqueued one has

	Payload []byte // only if it was loaded
	Salt    []byte // of the digests; only with Payload
	Result  []byte // only if it was loaded; nil: none
}

// DefaultMaxAttempts is the number of attempts of a job that sets no other.
const DefaultMaxAttempts = 5
