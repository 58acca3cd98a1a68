package event

import "time"

// Body holds what one kind of event has besides the envelope. It is sealed: this package defines all kinds.
// Each implements fields, which names its JSON fields once, for writing and for reading.
type Body interface {
	Kind() Kind
	fields(f *fields)
}

// Enqueued: a job was accepted. The job's id is in the envelope.
// States: – → queued or blocked.
type Enqueued struct {
	Queue string `event:"queue,label,required"` // the queue
	// -100 to 100; higher is claimed first
	Priority int       `event:"priority,min=-100,max=100"`
	RunAt    time.Time `event:"run_at,required"` // not before this time
	// failures after which the job is failed for good
	MaxAttempts int `event:"max_attempts,min=1"`
	// how long an attempt may take; 0: any time
	MaxRuntime time.Duration `event:"max_runtime"`
	// the version of worker that the job needs; "": any
	Version string `event:"version,label"`
	// labels that a worker must have
	Requires []string `event:"requires,label"`
	// the caller's own name for the job, unique in its queue for ever, or as UniqueWhile says; "": none
	Key           string            `event:"key"`
	Tags          map[string]string `event:"tags"`                           // the caller's own labels
	PayloadSHA256 string            `event:"payload_sha256,digest,required"` // hex of SHA-256(salt‖payload)
	PayloadBytes  int64             `event:"payload_bytes"`                  // size of the payload

	Schedule string `event:"schedule,label"` // whose job it is; "": of none
	// the moment of the schedule that it is for; zero: an operator's run besides the ticks
	Tick time.Time `event:"tick"`
	Next time.Time `event:"next"` // the schedule's next tick after that; zero: none

	// the group of the job; groups are served in rotation; "": none
	Group string `event:"group,group"`

	Backoff Backoff // zero: the default one

	// the ids of the jobs that it waits for, each with ":failed" or ":finished" behind it where success is not
	// what is waited for
	After []string `event:"after,reference"`
	// the ids of the blocked jobs that wait for this one too, as in After
	Before []string `event:"before,reference"`
	Hold   bool     `event:"hold"` // it waits until an operator lifts the hold
	// it begins as blocked: something that it waits for has not come about
	Blocked bool `event:"blocked"`

	// how long the job has its Key: until a worker claims the job or until the job has ended; "": for ever
	UniqueWhile string `event:"unique_while,oneof=queued|unfinished"`

	// the form of the payload: "argv" is a command that the job carries; "": any, as its worker reads it
	Form string `event:"form,oneof=argv"`
}

// Claimed: a worker took the job. The worker's process (boot, host, pid, version) is in the envelope's
// Worker.
// States: queued → claimed.
type Claimed struct {
	// the end of the lease, unless a heartbeat extends it
	LeaseUntil time.Time     `event:"lease_until,required"`
	MaxRuntime time.Duration `event:"max_runtime"` // the one in force for this claim; 0: none
	// a limit of the queue was in force: the end of the claim frees a slot
	Limited bool `event:"limited"`
}

// Heartbeat: the owner proved to be alive.
// States: claimed, running → running.
type Heartbeat struct {
	LeaseUntil time.Time `event:"lease_until,required"`
	// 0 to 1, as the owner reported; nil: not said
	Progress *float64 `event:"progress,min=0,max=1"`
	// the owner's own words on its progress; "": none
	Note string `event:"note"`
	// a process of the attempt that is to end and may not be signalled, and why; the lease may then go on
	// beyond the max runtime; "": none
	CannotEnd string `event:"cannot_end"`
}

// Succeeded: the owner finished the job.
// States: claimed, running → succeeded.
type Succeeded struct {
	// hex of SHA-256(salt‖result); "": no result
	ResultSHA256 string `event:"result_sha256,digest"`
	ResultBytes  int64  `event:"result_bytes"` // size of the result
	// nil: no process, or it was ended by a signal
	ExitCode *int `event:"exit_code"`
	Output   Output
	Cost     Cost
	// the work went on beyond the max runtime of the claim, and was done
	AfterMaxRuntime bool `event:"after_max_runtime"`
}

// Failed: the owner's attempt failed.
// States: claimed, running → queued or failed.
type Failed struct {
	// the reason of a failure, for programs
	ErrorCode string `event:"error_code,label,required"`
	// the reason of a failure, for people; up to 8 KiB; "": none
	ErrorDetail string `event:"error_detail"`
	ExitCode    *int   `event:"exit_code"`
	// the signal that ended the command; "": none
	Signal string `event:"signal"`
	// when the job is tried again; zero: it is failed for good
	RetryAt time.Time `event:"retry_at"`
	Output  Output
	Cost    Cost
}

// Released: the owner gave the job back before its end; no failure.
// States: claimed, running → queued.
type Released struct {
	Reason string    `event:"reason"` // why, as given; "": not said
	RunAt  time.Time `event:"run_at,required"`
	// the job itself asked to be run later; counted, up to 99
	Snooze bool `event:"snooze"`
	Output Output
	// with which the command ended; nil: none ended, or an older program did not say
	ExitCode *int `event:"exit_code"`
	Cost     Cost
}

// Output describes what the command of an attempt wrote. It covers all bytes, including those that were not
// kept. They have the job's salt before the bytes, as Digest has it, so that nothing can be guessed once that
// is erased.
type Output struct {
	// digest of all that the command wrote to standard output; "": nothing, or it was not looked at
	StdoutSHA256 string `event:"stdout_sha256"`
	StdoutBytes  int64  `event:"stdout_bytes"` // how much that was, kept or not
	// digest of all that it wrote to standard error; "": likewise
	StderrSHA256 string `event:"stderr_sha256"`
	StderrBytes  int64  `event:"stderr_bytes"` // how much that was, kept or not

	// digest of what the log file holds, if that is not all that was written: head and tail of a flood, what
	// was written before an error, or nothing where no file could be made; "": all of it
	StdoutKeptSHA256 string `event:"stdout_kept_sha256,digest"`
	// digest of what the other log file holds; "": the file holds the whole stream
	StderrKeptSHA256 string `event:"stderr_kept_sha256,digest"`
}

// Cost is what the processes of an attempt used, as the system counted it. The zero Cost is not known.
type Cost struct {
	// processor time in the programs' own code, of all processes of the attempt; 0: not known, or none
	CPUUser time.Duration `event:"cpu_user"`
	// processor time in the system on their behalf; 0: likewise
	CPUSystem time.Duration `event:"cpu_system"`
	// the most memory in bytes that one of the processes had at once; 0: not known, or less than a process has
	// that begins
	MaxRSS int64 `event:"max_rss"`
}

// CPU is all processor time.
func (c Cost) CPU() time.Duration { return c.CPUUser + c.CPUSystem }

// CostOf returns what b says that an attempt used, and whether events of its kind say that.
func CostOf(b Body) (Cost, bool) {
	switch b := b.(type) {
	case *Succeeded:
		return b.Cost, true
	case *Failed:
		return b.Cost, true
	case *Released:
		return b.Cost, true
	case *Stopped:
		return b.Cost, true
	}
	return Cost{}, false
}

// Why a claim was reclaimed; also the job's error_code.
const (
	LeaseExpired = "lease_expired"
	MaxRuntime   = "max_runtime"
)

// Reclaimed: a sweeper took the job back from an owner that was silent, or beyond its max runtime.
// States: claimed, running → queued or failed.
type Reclaimed struct {
	// also the job's error_code; max_runtime says that its owner was still heard of when that time was over,
	// and lease_expired that it was not; older events say max_runtime whenever that time was over when the
	// sweeper looked
	Reason string `event:"reason,required,oneof=lease_expired|max_runtime"`
	// the last sign of life of the claim
	LastHeartbeat time.Time `event:"last_heartbeat,required"`
	LeaseUntil    time.Time `event:"lease_until,required"`
	RetryAt       time.Time `event:"retry_at"`
	// the CannotEnd of its last heartbeat: a process that may run on; "": none
	StillRunning string `event:"still_running"`
}

// Cancelled: an operator ended the job.
// States: queued, claimed, running, blocked → cancelled.
type Cancelled struct {
	Reason string `event:"reason"`
	// the job whose end cannot be what this one waited for; "": an operator cancelled it
	Because JobID `event:"because,job"`
}

// Retried: an operator queued an ended job again.
// States: succeeded, failed, cancelled → queued; cancelled → blocked.
type Retried struct {
	Reason string `event:"reason"`
	// when a command of it that may still run has ended for certain; zero: at once
	RunAt time.Time `event:"run_at"`

	// the job that was queued again, for which this one waits once more; "": an operator retried this one
	Because JobID `event:"because,job"`
	Alone   bool  `event:"alone"` // the jobs that were cancelled because of it stay so

	// another job has its key by now, so that it is cancelled again
	KeyTaken bool `event:"key_taken"`

	MaxRuntime time.Duration `event:"max_runtime"` // of its attempts from now on; 0: as before
}

// Rescheduled: an operator changed when, or before which others, a queued job runs.
// States: queued → queued; blocked → blocked.
type Rescheduled struct {
	RunAt    time.Time `event:"run_at,required"`
	Priority int       `event:"priority,min=-100,max=100"`
	Reason   string    `event:"reason"`
}

// Unblocked: a job need not wait any longer, or its hold was lifted.
// States: blocked → queued or blocked.
type Unblocked struct {
	// the job whose end was the last that it waited for; "": an operator lifted its hold
	Because JobID  `event:"because,job"`
	Hold    bool   `event:"hold"`    // its hold was lifted
	Blocked bool   `event:"blocked"` // it still waits for other jobs
	Reason  string `event:"reason"`
}

// Refused: a write with a token that was not the live one. Nothing changed.
type Refused struct {
	// the command
	Command string `event:"command,required,oneof=heartbeat|succeed|fail|release|take_over"`
	Why     string `event:"why,required"` // the reason of the refusal
	// hex of SHA-256(salt‖result) of the result that was offered; "": no result was offered
	OfferedSHA256 string `event:"offered_sha256,digest"`
	OfferedBytes  int64  `event:"offered_bytes"` // size of that result
}

// Erased: payload, results and salt were removed.
type Erased struct {
	Bodies int    `event:"bodies"` // how many payloads and results
	Bytes  int64  `event:"bytes"`  // how many bytes that was
	Reason string `event:"reason"`
}

// Why a command had to stop: how it came that its claim was over.
const (
	WhyCancelled = "cancelled"
	WhyReclaimed = "reclaimed"
)

// Stopped: the command of a claim that had been taken from its owner has ended. The envelope names that
// claim. Nothing changed.
type Stopped struct {
	ExitCode *int   `event:"exit_code"` // nil: it was killed, or never began
	Signal   string `event:"signal"`
	// how it came that the claim was over
	Why  string `event:"why,required,oneof=cancelled|reclaimed"`
	Cost Cost
}

// Survived: the command of the last claim, which was cancelled, could not be ended, and runs on. The envelope
// names that claim. What waits for the end of the command waits until it is recorded as Stopped, or until
// LeaseUntil. The job does not change.
type Survived struct {
	CannotEnd  string    `event:"cannot_end,required"` // which process may not be signalled, and why
	LeaseUntil time.Time `event:"lease_until,required"`
}

// TakenOver: another process of the same worker holds the claim from now on, with the same token. The
// process (boot, host, pid, version) is in the envelope's Worker.
// States: claimed, running → running.
type TakenOver struct {
	LeaseUntil time.Time `event:"lease_until,required"`
}

// Kind returns KindEnqueued.
func (*Enqueued) Kind() Kind { return KindEnqueued }

// Kind returns KindClaimed.
func (*Claimed) Kind() Kind { return KindClaimed }

// Kind returns KindHeartbeat.
func (*Heartbeat) Kind() Kind { return KindHeartbeat }

// Kind returns KindSucceeded.
func (*Succeeded) Kind() Kind { return KindSucceeded }

// Kind returns KindFailed.
func (*Failed) Kind() Kind { return KindFailed }

// Kind returns KindReleased.
func (*Released) Kind() Kind { return KindReleased }

// Kind returns KindReclaimed.
func (*Reclaimed) Kind() Kind { return KindReclaimed }

// Kind returns KindCancelled.
func (*Cancelled) Kind() Kind { return KindCancelled }

// Kind returns KindRetried.
func (*Retried) Kind() Kind { return KindRetried }

// Kind returns KindRescheduled.
func (*Rescheduled) Kind() Kind { return KindRescheduled }

// Kind returns KindRefused.
func (*Refused) Kind() Kind { return KindRefused }

// Kind returns KindErased.
func (*Erased) Kind() Kind { return KindErased }

// Kind returns KindQueuePaused.
func (*QueuePaused) Kind() Kind { return KindQueuePaused }

// Kind returns KindQueueResumed.
func (*QueueResumed) Kind() Kind { return KindQueueResumed }

// Kind returns KindQueueLimited.
func (*QueueLimited) Kind() Kind { return KindQueueLimited }

// Kind returns KindWorkerStarted.
func (*WorkerStarted) Kind() Kind { return KindWorkerStarted }

// Kind returns KindWorkerStopped.
func (*WorkerStopped) Kind() Kind { return KindWorkerStopped }

// Kind returns KindRebuilt.
func (*Rebuilt) Kind() Kind { return KindRebuilt }

// Kind returns KindRestored.
func (*Restored) Kind() Kind { return KindRestored }

// Kind returns KindImported.
func (*Imported) Kind() Kind { return KindImported }

// Kind returns KindSealing.
func (*Sealing) Kind() Kind { return KindSealing }

// Kind returns KindUnblocked.
func (*Unblocked) Kind() Kind { return KindUnblocked }

// Kind returns KindSurvived.
func (*Survived) Kind() Kind { return KindSurvived }

// Kind returns KindStopped.
func (*Stopped) Kind() Kind { return KindStopped }

// Kind returns KindTakenOver.
func (*TakenOver) Kind() Kind { return KindTakenOver }
