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
	Tags        map[string]string
	MaxAttempts int
	MaxRuntime  time.Duration // as enqueued; 0: none
	Version     string        // "": any worker
	Requires    []string

	Attempt  int // numbers claims; never reused
	Failures int // claims that failed or were reclaimed since the job was last retried by an operator
	Snoozes  int // claims that asked to be run later since then

	Worker      event.Worker // the owner; after the end, the last one
	Token       string       // of the live claim; "": none
	ClaimedAt   time.Time
	HeartbeatAt time.Time
	LeaseUntil  time.Time // zero: no live claim
	EndBy       time.Time // ClaimedAt + the max runtime in force; zero: none
	FinishedAt  time.Time

	Progress    *float64
	Note        string
	ErrorCode   string // of the last failure
	ErrorDetail string
	Erased      bool // payload and results were erased

	Payload []byte // only if it was loaded
	Salt    []byte // of the digests; only with Payload
	Result  []byte // only if it was loaded; nil: none
}

// DefaultMaxAttempts is the number of attempts of a job that sets no other.
const DefaultMaxAttempts = 5
