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
	Queue         string
	Priority      int
	RunAt         time.Time
	MaxAttempts   int
	MaxRuntime    time.Duration // 0: none
	Version       string        // "": any worker
	Requires      []string
	Key           string
	Tags          map[string]string
	PayloadSHA256 string // hex of SHA-256(salt‖payload)
	PayloadBytes  int64

	Schedule string    // whose job it is; "": of none
	Tick     time.Time // the moment of the schedule that it is for; zero: an operator's run besides the ticks
	Next     time.Time // the schedule's next tick after that; zero: none

	Group string // "": none

	Backoff Backoff // zero: the default one

	// After lists the jobs that this one waits for, and Before those that are to wait for this one too: ids,
	// each with ":failed" or ":finished" behind it where success is not what is waited for.
	After   []string
	Before  []string
	Hold    bool // it waits until an operator lifts the hold
	Blocked bool // it begins as blocked: something that it waits for has not come about

	UniqueWhile string // how long Key is its own: WhileQueued or WhileUnfinished; "": for ever
}

// Claimed: a worker took the job. The worker's process (boot, host, pid, version) is in the envelope's
// Worker.
type Claimed struct {
	LeaseUntil time.Time
	MaxRuntime time.Duration // the one in force for this claim; 0: none
	Limited    bool          // a limit of the queue was in force: the end of the claim frees a slot
}

// Heartbeat: the owner proved to be alive.
type Heartbeat struct {
	LeaseUntil time.Time
	Progress   *float64 // 0…1; nil: not said
	Note       string
	CannotEnd  string // which process the worker is to end and may not signal, and why; "": none
}

// Succeeded: the owner finished the job.
type Succeeded struct {
	ResultSHA256 string // hex of SHA-256(salt‖result); "" without a result
	ResultBytes  int64
	ExitCode     *int // nil: no process
	Output       Output
}

// Failed: the owner's attempt failed.
type Failed struct {
	ErrorCode   string
	ErrorDetail string
	ExitCode    *int
	Signal      string
	RetryAt     time.Time // zero: gave up
	Output      Output
}

// Released: the owner gave the job back before its end; no failure.
type Released struct {
	Reason string
	RunAt  time.Time
	Snooze bool // the job itself asked to be run later; counted
	Output Output
}

// Output describes what the command of an attempt wrote. It covers all bytes, also those that were not kept.
// They have the job's salt before the bytes, as Digest has it, so that nothing can be guessed once that is
// erased.
type Output struct {
	StdoutSHA256 string // hex; "" where it wrote nothing, or was not to be looked at
	StdoutBytes  int64
	StderrSHA256 string // likewise
	StderrBytes  int64

	// StdoutKeptSHA256 and StderrKeptSHA256 are the digests of what the log files hold, where that is not all
	// that was written: head and tail of a flood, or what was written before an error. Else they are "".
	StdoutKeptSHA256, StderrKeptSHA256 string
}

// Why a claim was reclaimed; also the job's error_code.
const (
	LeaseExpired = "lease_expired"
	MaxRuntime   = "max_runtime"
)

// Reclaimed: a sweeper took the job back from an owner that was silent, or beyond its max runtime.
type Reclaimed struct {
	Reason        string // LeaseExpired or MaxRuntime
	LastHeartbeat time.Time
	LeaseUntil    time.Time
	RetryAt       time.Time // zero: gave up
	StillRunning  string    // the CannotEnd of its last heartbeat: a process that may run on; "": none
}

// Cancelled: an operator ended the job.
type Cancelled struct {
	Reason  string
	Because JobID // the job whose end cannot be what this one waited for; "": an operator cancelled it
}

// Retried: an operator queued an ended job again.
type Retried struct {
	Reason string
	RunAt  time.Time // zero: at once; else it waits until then for a command that may still run

	// Because is the job that was queued again, on which this one waits once more; "": an operator retried it.
	Because JobID
	Alone   bool // the jobs that were cancelled because of it stay so

	// KeyTaken says that another job has its key by now, so that it is cancelled again.
	KeyTaken bool
}

// Rescheduled: an operator changed when, or before which others, a queued job runs.
type Rescheduled struct {
	RunAt    time.Time
	Priority int
	Reason   string
}

// Unblocked: a job need not wait any longer, or its hold was lifted.
type Unblocked struct {
	Because JobID // the job whose end was the last that it waited for; "": an operator lifted its hold
	Hold    bool  // its hold was lifted
	Blocked bool  // it still waits for other jobs
	Reason  string
}

// Refused: a write with a token that was not the live one. Nothing changed.
type Refused struct {
	Command       string // heartbeat, succeed, fail, release
	Why           string
	OfferedSHA256 string // hex of SHA-256(salt‖result) of the result that was offered; "" if none was
	OfferedBytes  int64
}

// Erased: payload, results and salt were removed.
type Erased struct {
	Bodies int // how many
	Bytes  int64
	Reason string
}

// QueuePaused: nothing is claimed from this queue.
type QueuePaused struct{ Queue, Reason string }

// QueueResumed: the queue gives jobs again.
type QueueResumed struct{ Queue, Reason string }

// QueueLimited: the limits of a queue are these from now on, all of them; without any it has none, nor has
// any group of it. With a Group it is an exception: Running and Rate bound that group, in place of PerGroup
// and GroupRate; without any the group has none.
type QueueLimited struct {
	Queue    string
	Group    string // "": the queue as a whole
	Running  int    // how many of its jobs may be claimed or running at once; 0: any number
	PerGroup int    // how many of each group; 0: any number

	Rate    int           // how many may start within RatePer, evenly spread; 0: any number
	RatePer time.Duration // 0 without a rate
	Burst   int           // how many of them may start at once after a pause; 0: one

	GroupRate    int           // how many of each group may start within GroupRatePer; 0: any number
	GroupRatePer time.Duration // 0 without such a rate
	GroupBurst   int           // how many of them may start at once after a pause; 0: one

	// Ageing is the wait that counts as much as one more of priority; 0: a priority always comes first.
	Ageing time.Duration

	Reason string
}

// WorkerStarted: a worker process began. Boot, host, pid and version are in the envelope's Worker.
type WorkerStarted struct {
	Queues       []string
	Capabilities []string
}

// WorkerStopped: a worker process ended in an orderly way.
type WorkerStopped struct{}

// Rebuilt: the projection was derived again from the events.
type Rebuilt struct {
	Jobs                    int64 // rows derived
	Changed, Missing, Extra int64 // old rows that differed, were missing, or should not exist
}

// Restored: the ledger was restored from a backup.
type Restored struct {
	From   string
	Events int64 // that the backup held; this one follows on them
	Lost   *int  // events of the previous ledger that the backup lacks; nil: not known, or no previous ledger

	// HeadSize and HeadRoot say how many events the ledger that was replaced had, and the root of its hash tree
	// in base64; 0 and "" where it was not sealed, where it could not be read, or where there was none.
	HeadSize int64
	HeadRoot string
}

// Imported: the ledger's events came from a file.
type Imported struct {
	From          string
	Events        int64
	MissingBodies int64 // of those events: how many named a payload or result that the file had not, unerased

	// AsOf is the moment of which the ledger is a copy, for looking at; zero: the ledger is to go on.
	AsOf time.Time
}

// Sealing: from here on the ledger's events are sealed under this name. A later one replaces it.
type Sealing struct {
	Origin string // the name of the ledger in its checkpoints
	Key    string // the public key that checkpoints are signed with, NAME+HASH+KEY; "": none
	Reason string
}

// Why a command had to stop: how it came that its claim was over.
const (
	WhyCancelled = "cancelled"
	WhyReclaimed = "reclaimed"
)

// Stopped: the command of a claim that had been taken from its owner has ended. The envelope names that
// claim. Nothing changed.
type Stopped struct {
	ExitCode *int // nil: it was killed, or never began
	Signal   string
	Why      string // WhyCancelled or WhyReclaimed
}

// Survived: the command of the last claim, which was cancelled, could not be ended, and runs on. The envelope
// names that claim. What waits for the end of the command waits until it is recorded as Stopped, or until
// LeaseUntil. The job does not change.
type Survived struct {
	CannotEnd  string // which process may not be signalled, and why
	LeaseUntil time.Time
}

// TakenOver: another process of the same worker holds the claim from now on, with the same token. The
// process (boot, host, pid, version) is in the envelope's Worker.
type TakenOver struct{ LeaseUntil time.Time }

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
