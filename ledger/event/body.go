package event

import "time"

// Body holds what one kind of event has besides the envelope. It is sealed: this package defines all kinds.
// Each implements fields, which names its JSON fields once, for writing and for reading.
type Body interface {
	Kind() Kind
	fields(f *fields)
}

// Enqueued: a job was accepted. The job's id is in the envelope.
type Enqueued struct {
	Queue         string            `event:"queue,label,required"`
	Priority      int               `event:"priority,min=-100,max=100"`
	RunAt         time.Time         `event:"run_at,required"`
	MaxAttempts   int               `event:"max_attempts,min=1"`
	MaxRuntime    time.Duration     `event:"max_runtime"`   // 0: none
	Version       string            `event:"version,label"` // "": any worker
	Requires      []string          `event:"requires,label"`
	Key           string            `event:"key"`
	Tags          map[string]string `event:"tags"`
	PayloadSHA256 string            `event:"payload_sha256,digest,required"` // hex of SHA-256(salt‖payload)
	PayloadBytes  int64             `event:"payload_bytes"`

	Schedule string `event:"schedule,label"` // whose job it is; "": of none
	// the moment of the schedule that it is for; zero: an operator's run besides the ticks
	Tick time.Time `event:"tick"`
	Next time.Time `event:"next"` // the schedule's next tick after that; zero: none

	Group string `event:"group,group"` // "": none

	Backoff Backoff // zero: the default one

	// After lists the jobs that this one waits for, and Before those that are to wait for this one too: ids,
	// each with ":failed" or ":finished" behind it where success is not what is waited for.
	After  []string `event:"after,reference"`
	Before []string `event:"before,reference"`
	Hold   bool     `event:"hold"` // it waits until an operator lifts the hold
	// it begins as blocked: something that it waits for has not come about
	Blocked bool `event:"blocked"`

	// how long Key is its own: WhileQueued or WhileUnfinished; "": for ever
	UniqueWhile string `event:"unique_while,oneof=queued|unfinished"`
}

// Claimed: a worker took the job. The worker's process (boot, host, pid, version) is in the envelope's
// Worker.
type Claimed struct {
	LeaseUntil time.Time     `event:"lease_until,required"`
	MaxRuntime time.Duration `event:"max_runtime"` // the one in force for this claim; 0: none
	// a limit of the queue was in force: the end of the claim frees a slot
	Limited bool `event:"limited"`
}

// Heartbeat: the owner proved to be alive.
type Heartbeat struct {
	LeaseUntil time.Time `event:"lease_until,required"`
	Progress   *float64  `event:"progress,min=0,max=1"` // 0…1; nil: not said
	Note       string    `event:"note"`
	// which process the worker is to end and may not signal, and why; "": none
	CannotEnd string `event:"cannot_end"`
}

// Succeeded: the owner finished the job.
type Succeeded struct {
	// hex of SHA-256(salt‖result); "" without a result
	ResultSHA256 string `event:"result_sha256,digest"`
	ResultBytes  int64  `event:"result_bytes"`
	ExitCode     *int   `event:"exit_code"` // nil: no process
	Output       Output
}

// Failed: the owner's attempt failed.
type Failed struct {
	ErrorCode   string    `event:"error_code,label,required"`
	ErrorDetail string    `event:"error_detail"`
	ExitCode    *int      `event:"exit_code"`
	Signal      string    `event:"signal"`
	RetryAt     time.Time `event:"retry_at"` // zero: gave up
	Output      Output
}

// Released: the owner gave the job back before its end; no failure.
type Released struct {
	Reason string    `event:"reason"`
	RunAt  time.Time `event:"run_at,required"`
	Snooze bool      `event:"snooze"` // the job itself asked to be run later; counted
	Output Output
	// with which the command ended; nil: none ended, or an older program did not say
	ExitCode *int `event:"exit_code"`
}

// Output describes what the command of an attempt wrote. It covers all bytes, also those that were not kept.
// They have the job's salt before the bytes, as Digest has it, so that nothing can be guessed once that is
// erased.
type Output struct {
	// hex; "" where it wrote nothing, or was not to be looked at
	StdoutSHA256 string `event:"stdout_sha256"`
	StdoutBytes  int64  `event:"stdout_bytes"`
	StderrSHA256 string `event:"stderr_sha256"` // likewise
	StderrBytes  int64  `event:"stderr_bytes"`

	// StdoutKeptSHA256 and StderrKeptSHA256 are the digests of what the log files hold, where that is not all
	// that was written: head and tail of a flood, what was written before an error, or nothing, where a file
	// could not be made. Else they are "".
	StdoutKeptSHA256 string `event:"stdout_kept_sha256,digest"`
	StderrKeptSHA256 string `event:"stderr_kept_sha256,digest"`
}

// Why a claim was reclaimed; also the job's error_code.
const (
	LeaseExpired = "lease_expired"
	MaxRuntime   = "max_runtime"
)

// Reclaimed: a sweeper took the job back from an owner that was silent, or beyond its max runtime.
type Reclaimed struct {
	// LeaseExpired or MaxRuntime
	Reason        string    `event:"reason,required,oneof=lease_expired|max_runtime"`
	LastHeartbeat time.Time `event:"last_heartbeat,required"`
	LeaseUntil    time.Time `event:"lease_until,required"`
	RetryAt       time.Time `event:"retry_at"` // zero: gave up
	// the CannotEnd of its last heartbeat: a process that may run on; "": none
	StillRunning string `event:"still_running"`
}

// Cancelled: an operator ended the job.
type Cancelled struct {
	Reason string `event:"reason"`
	// the job whose end cannot be what this one waited for; "": an operator cancelled it
	Because JobID `event:"because,job"`
}

// Retried: an operator queued an ended job again.
type Retried struct {
	Reason string `event:"reason"`
	// zero: at once; else it waits until then for a command that may still run
	RunAt time.Time `event:"run_at"`

	// Because is the job that was queued again, on which this one waits once more; "": an operator retried it.
	Because JobID `event:"because,job"`
	Alone   bool  `event:"alone"` // the jobs that were cancelled because of it stay so

	// KeyTaken says that another job has its key by now, so that it is cancelled again.
	KeyTaken bool `event:"key_taken"`
}

// Rescheduled: an operator changed when, or before which others, a queued job runs.
type Rescheduled struct {
	RunAt    time.Time `event:"run_at,required"`
	Priority int       `event:"priority,min=-100,max=100"`
	Reason   string    `event:"reason"`
}

// Unblocked: a job need not wait any longer, or its hold was lifted.
type Unblocked struct {
	// the job whose end was the last that it waited for; "": an operator lifted its hold
	Because JobID  `event:"because,job"`
	Hold    bool   `event:"hold"`    // its hold was lifted
	Blocked bool   `event:"blocked"` // it still waits for other jobs
	Reason  string `event:"reason"`
}

// Refused: a write with a token that was not the live one. Nothing changed.
type Refused struct {
	// heartbeat, succeed, fail, release
	Command string `event:"command,required,oneof=heartbeat|succeed|fail|release|take_over"`
	Why     string `event:"why,required"`
	// hex of SHA-256(salt‖result) of the result that was offered; "" if none was
	OfferedSHA256 string `event:"offered_sha256,digest"`
	OfferedBytes  int64  `event:"offered_bytes"`
}

// Erased: payload, results and salt were removed.
type Erased struct {
	Bodies int    `event:"bodies"` // how many
	Bytes  int64  `event:"bytes"`
	Reason string `event:"reason"`
}

// QueuePaused: nothing is claimed from this queue.
type QueuePaused struct {
	Queue  string `event:"queue,label,required"`
	Reason string `event:"reason"`
}

// QueueResumed: the queue gives jobs again.
type QueueResumed struct {
	Queue  string `event:"queue,label,required"`
	Reason string `event:"reason"`
}

// QueueLimited: the limits of a queue are these from now on, all of them; without any it has none, nor has
// any group of it. With a Group it is an exception: Running and Rate bound that group, in place of PerGroup
// and GroupRate; without any the group has none.
type QueueLimited struct {
	Queue string `event:"queue,label,required"`
	Group string `event:"group,group"` // "": the queue as a whole
	// how many of its jobs may be claimed or running at once; 0: any number
	Running  int `event:"running,max=1000000"`
	PerGroup int `event:"per_group,max=1000000"` // how many of each group; 0: any number

	// how many may start within RatePer, evenly spread; 0: any number
	Rate    int           `event:"rate,max=1000000"`
	RatePer time.Duration `event:"rate_per,max=744h"` // 0 without a rate
	// how many of them may start at once after a pause; 0: one
	Burst int `event:"burst,max=1000000"`

	// how many of each group may start within GroupRatePer; 0: any number
	GroupRate    int           `event:"group_rate,max=1000000"`
	GroupRatePer time.Duration `event:"group_rate_per,max=744h"` // 0 without such a rate
	// how many of them may start at once after a pause; 0: one
	GroupBurst int `event:"group_burst,max=1000000"`

	// Ageing is the wait that counts as much as one more of priority; 0: a priority always comes first.
	Ageing time.Duration `event:"ageing,max=744h"`

	Reason string `event:"reason"`
}

// WorkerStarted: a worker process began. Boot, host, pid and version are in the envelope's Worker.
type WorkerStarted struct {
	Queues       []string `event:"queues,required"`
	Capabilities []string `event:"capabilities"`
}

// WorkerStopped: a worker process ended in an orderly way.
type WorkerStopped struct{}

// Rebuilt: the projection was derived again from the events.
type Rebuilt struct {
	Jobs    int64 `event:"jobs"`    // rows derived
	Changed int64 `event:"changed"` // old rows that differed, were missing, or should not exist
	Missing int64 `event:"missing"`
	Extra   int64 `event:"extra"`
}

// Restored: the ledger was restored from a backup.
type Restored struct {
	From   string `event:"from"`
	Events int64  `event:"events"` // that the backup held; this one follows on them
	// events of the previous ledger that the backup lacks; nil: not known, or no previous ledger
	Lost *int `event:"lost,min=0"`

	// HeadSize and HeadRoot say how many events the ledger that was replaced had, and the root of its hash tree
	// in base64; 0 and "" where it was not sealed, where it could not be read, or where there was none.
	HeadSize int64  `event:"head_size"`
	HeadRoot string `event:"head_root"`
}

// Imported: the ledger's events came from a file.
type Imported struct {
	From   string `event:"from"`
	Events int64  `event:"events"`
	// of those events: how many named a payload or result that the file had not, unerased
	MissingBodies int64 `event:"missing_bodies"`

	// AsOf is the moment of which the ledger is a copy, for looking at; zero: the ledger is to go on.
	AsOf time.Time `event:"as_of"`
}

// Sealing: from here on the ledger's events are sealed under this name. A later one replaces it.
type Sealing struct {
	Origin string `event:"origin,required"` // the name of the ledger in its checkpoints
	// the public key that checkpoints are signed with, NAME+HASH+KEY; "": none
	Key    string `event:"key"`
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
	Why      string `event:"why,required,oneof=cancelled|reclaimed"` // WhyCancelled or WhyReclaimed
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
