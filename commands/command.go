// Package commands is the write side: what may be asked of a job (Command), whether it is allowed (Decide), and the
// Service that carries it out. Every row and event goes through one private function, record.
package commands

import (
	"time"

	"jobledger/ledger"
)

// Command is one thing that may be asked of a job.
type Command interface {
	name() string // as on the command line
}

// Claim takes a queued job for a worker. Service.Claim finds the jobs.
type Claim struct {
	Token      string
	Worker     ledger.Worker
	Lease      time.Duration
	MaxRuntime time.Duration // the worker's own limit; 0: the job's alone
}

// Heartbeat extends the lease and may say how far the work is.
type Heartbeat struct {
	Token    string
	Owner    string // the worker who must hold the claim; "": whoever has the token
	Lease    time.Duration
	Progress *float64 // 0…1; nil: not said
	Note     string
}

// Succeed ends the claim and the job.
type Succeed struct {
	Token    string
	Owner    string // as Heartbeat's
	Result   []byte // nil: none
	ExitCode *int   // nil: no process
	Output   ledger.Output
}

// Fail ends the claim as a failure. The job is retried later unless it has failed MaxAttempts times.
type Fail struct {
	Token    string
	Owner    string // as Heartbeat's
	Code     string // default "failed"
	Detail   string
	ExitCode *int
	Signal   string
	RetryIn  *time.Duration // nil: the backoff
	NoRetry  bool           // give up now
	Output   ledger.Output
}

// Release gives the job back unfinished, which is no failure.
type Release struct {
	Token  string
	Owner  string // as Heartbeat's
	Reason string
	Delay  time.Duration // until it may be claimed again
	Snooze bool          // the job itself asked for it: counted, with the backoff where Delay is 0; the 100th is a failure
	Output ledger.Output
}

// Reclaim takes the job from an owner whose lease has run out. Token and LeaseUntil are what the sweeper saw.
type Reclaim struct {
	Token      string
	LeaseUntil time.Time
}

// Cancel ends a job that has not ended.
type Cancel struct{ Reason string }

// Retry queues a job that has ended again.
type Retry struct{ Reason string }

// Reschedule changes when a queued job runs, or before which others.
type Reschedule struct {
	RunAt    *time.Time // nil: as it is; in the past: now
	Priority *int       // nil: as it is
	Reason   string
}

// Erase removes a job's payload, results and salt for good. Its history stays, and says what was removed and why.
type Erase struct{ Reason string }

func (Claim) name() string      { return "claim" }
func (Heartbeat) name() string  { return "heartbeat" }
func (Succeed) name() string    { return "succeed" }
func (Fail) name() string       { return "fail" }
func (Release) name() string    { return "release" }
func (Reclaim) name() string    { return "reclaim" }
func (Cancel) name() string     { return "cancel" }
func (Retry) name() string      { return "retry" }
func (Reschedule) name() string { return "reschedule" }
func (Erase) name() string      { return "erase" }

// credentials returns what an owner's command shows: the token, and perhaps a name; ok is false for everybody else's.
func credentials(c Command) (token, owner string, ok bool) {
	switch c := c.(type) {
	case Heartbeat:
		return c.Token, c.Owner, true
	case Succeed:
		return c.Token, c.Owner, true
	case Fail:
		return c.Token, c.Owner, true
	case Release:
		return c.Token, c.Owner, true
	}
	return "", "", false
}
