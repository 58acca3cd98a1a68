package commands

import (
	"cmp"
	"fmt"
	"time"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Command is one thing that the owner of a claim or an operator may ask of a job: Heartbeat, Succeed, Fail
// and Release take a token, Cancel may take one; Retry, Reschedule, Edit, Unblock and Erase take none.
// Commands are passed by value.
type Command interface {
	action

	// check returns an InvalidError for the first field that no job could permit.
	check() error
}

// action is anything that is decided about one job: a Command, or what only this package may ask, which is to
// enqueue, claim and reclaim.
type action interface {
	// name is the verb, as on the command line.
	name() string

	// decide applies the rules of the action to j. It is pure; see decide.
	decide(j projection.Job, at time.Time) (journal.Fact, error)
}

// ownerCommand is a Command of the owner of a claim.
type ownerCommand interface {
	Command

	// credentials returns the token of the claim and the name of its worker, which may be empty.
	credentials() (token, owner string)
}

// Heartbeat extends the lease and may report progress.
type Heartbeat struct {
	Token    string
	Owner    string        // the worker that must hold the claim; "": the token suffices
	Lease    time.Duration // from now on; required
	Progress *float64      // 0…1; nil: not reported
	Note     string

	// CannotEnd says which process of the attempt is to end and may not be signalled, and why. While that is
	// said, the lease is not bounded by the max runtime: whatever comes after must not begin before the process
	// is gone. "": none.
	CannotEnd string
}

// Succeed ends the claim and the job.
type Succeed struct {
	Token    string
	Owner    string // as in Heartbeat
	Result   []byte // nil: none
	ExitCode *int   // nil: no process
	Output   event.Output
	Cost     event.Cost // of the command of the attempt; zero: not known

	// AfterMaxRuntime says that the work went on beyond the claim's max runtime. It ignores a claim without one.
	AfterMaxRuntime bool
}

// Fail ends the claim as a failure. The job is retried later unless it has failed MaxAttempts times.
type Fail struct {
	Token    string
	Owner    string // as in Heartbeat
	Code     string // default "failed"
	Detail   string
	ExitCode *int
	Signal   string
	RetryIn  *time.Duration // nil: exponential backoff
	NoRetry  bool           // the job fails for good
	Output   event.Output
	Cost     event.Cost // as in Succeed
}

// Release returns the job to its queue before it is finished. That does not count as a failure.
type Release struct {
	Token  string
	Owner  string // as in Heartbeat
	Reason string
	Delay  time.Duration // until it may be claimed again

	// Snooze says that the job itself asked to run later. Snoozes are counted, and back off where Delay is 0;
	// one more than MaxSnoozes is a failure.
	Snooze   bool
	Output   event.Output
	Cost     event.Cost // as in Succeed
	ExitCode *int       // of the command of the attempt; nil: none, or it did not end
}

// Cancel ends a job that has not ended.
type Cancel struct {
	Reason string

	// Token is that of the job's live claim, whose owner asks and has stopped the work, so that this is recorded
	// too. With another token nothing changes, and the answer is a RefusedError. "": an operator asks.
	Token string
}

// Retry queues a job that has ended again. A cancelled job whose last command may still run waits for its
// end, which is at the end of the lease at the latest. Jobs that were cancelled because of this one wait for
// it once more.
type Retry struct {
	Reason       string
	NotSucceeded bool // a job that has succeeded is refused, with a ConflictError
	Now          bool // do not wait
	Alone        bool // the jobs that were cancelled because of it stay so

	MaxRuntime time.Duration // how long an attempt may take from now on; 0: as before

	// Delay is how long the job is to wait in any case: it is rescheduled in the same transaction. 0: not at
	// all.
	Delay time.Duration

	// one that was cancelled because of a job that it waits for is refused, with a ConflictError
	NotDependent bool

	dependent bool // it was cancelled so. Read from the table deps by apply

	runsUntil time.Time // the last command may run until then; zero: it has ended. Read from the events by apply
}

// Reschedule changes the run_at or the priority of a job that is queued or blocked.
type Reschedule struct {
	RunAt    *time.Time // nil: unchanged; in the past: now
	Priority *int       // nil: unchanged
	Reason   string
}

// Erase removes a job's payload, results and salt for good. Its history stays, and says what was removed and
// why.
type Erase struct{ Reason string }

func (Heartbeat) name() string  { return "heartbeat" }
func (Succeed) name() string    { return "succeed" }
func (Fail) name() string       { return "fail" }
func (Release) name() string    { return "release" }
func (Cancel) name() string     { return "cancel" }
func (Retry) name() string      { return "retry" }
func (Reschedule) name() string { return "reschedule" }
func (Erase) name() string      { return "erase" }

func (c Heartbeat) credentials() (token, owner string) { return c.Token, c.Owner }
func (c Succeed) credentials() (token, owner string)   { return c.Token, c.Owner }
func (c Fail) credentials() (token, owner string)      { return c.Token, c.Owner }
func (c Release) credentials() (token, owner string)   { return c.Token, c.Owner }

// CheckCommand returns an InvalidError for a command that no job could permit.
func CheckCommand(c Command) error {
	switch c := c.(type) {
	case Heartbeat, Succeed, Fail, Release, TakeOver, ReportStop, Cancel, Retry, Reschedule, Edit, Erase,
		Unblock:
		return c.check()
	}
	return &InvalidError{"command", fmt.Sprintf("%T", c), "the commands of this package, by value"}
}

func (c Heartbeat) check() error {
	return cmp.Or(checkCredentials(c), invalid(check.Progress(c.Progress)), CheckLease(c.Lease),
		CheckText("cannot_end", c.CannotEnd, MaxReason),
		CheckText("note", c.Note, MaxReason))
}

func (c Succeed) check() error {
	return cmp.Or(checkCredentials(c), CheckSize("result", c.Result), invalid(check.Cost(c.Cost)))
}

func (c Fail) check() error {
	err := checkCredentials(c)
	if c.RetryIn != nil {
		err = cmp.Or(err, invalid(check.Delay("retry_in", *c.RetryIn)))
	}
	return cmp.Or(err, invalid(cmp.Or(check.Optional("code", c.Code), check.Cost(c.Cost))),
		CheckText("signal", c.Signal, MaxLabel), CheckText("detail", c.Detail, MaxErrorDetail))
}

func (c Release) check() error {
	return cmp.Or(checkCredentials(c), invalid(cmp.Or(check.Delay("delay", c.Delay), check.Cost(c.Cost))),
		CheckText("reason", c.Reason, MaxReason))
}

func (c Cancel) check() error {
	return cmp.Or(CheckText("token", c.Token, MaxKey), CheckText("reason", c.Reason, MaxReason))
}

func (c Erase) check() error { return CheckText("reason", c.Reason, MaxReason) }

func (c Retry) check() error {
	return cmp.Or(invalid(cmp.Or(check.Delay("delay", c.Delay), check.Runtime(c.MaxRuntime))),
		CheckText("reason", c.Reason, MaxReason))
}

func (c Reschedule) check() error {
	return cmp.Or(invalid(check.Reschedule(c.RunAt, c.Priority)), CheckText("reason", c.Reason, MaxReason))
}

func checkCredentials(c ownerCommand) error {
	token, owner := c.credentials()
	return cmp.Or(checkToken(token), CheckText("worker", owner, MaxKey))
}

// checkToken checks the token of a command that needs one.
func checkToken(token string) error {
	if token == "" {
		return &InvalidError{"token", "", "the token that the claim was given"}
	}
	return CheckText("token", token, MaxKey)
}
