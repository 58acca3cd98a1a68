package projection

import (
	"time"

	"jobledger/ledger"
)

// Job is what the events of one job add up to.
type Job struct {
	N     int64 // the pos of its enqueued event
	ID    ledger.JobID
	Seq   int64 // of the last event that changed it
	State ledger.State

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

	Worker      ledger.Worker // the owner; of a job that has ended, the last one
	Token       string        // the live claim's; "" when nobody holds the job
	ClaimedAt   time.Time
	HeartbeatAt time.Time
	LeaseUntil  time.Time // zero when nobody holds the job
	EndBy       time.Time // ClaimedAt + the max runtime in force; zero: none
	FinishedAt  time.Time

	Progress    *float64
	Note        string
	ErrorCode   string // of the last failure
	ErrorDetail string
	Erased      bool // payload and results are gone

	Payload []byte // only where it was asked for
	Salt    []byte // of the digests; only with Payload
	Result  []byte // only where it was asked for; nil: none
}

// DefaultMaxAttempts is how often a job is tried unless it says otherwise.
const DefaultMaxAttempts = 5
