package event

import "time"

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

// QueueLimited: the limits of a queue are these from now on, all of them; without any, neither the queue nor
// any group of it has limits. With a Group it is an exception: Running and Rate bound that group, in place of
// PerGroup and GroupRate; without any the group has none.
type QueueLimited struct {
	Queue string `event:"queue,label,required"`
	// the group whose exception this is; "": the limits are of the whole queue
	Group string `event:"group,group"`
	// how many of its jobs may be claimed or running at once; 0: any number
	Running  int `event:"running,max=1000000"`
	PerGroup int `event:"per_group,max=1000000"` // how many of each group; 0: any number

	// how many may start within RatePer, evenly spread; 0: any number
	Rate    int           `event:"rate,max=1000000"`
	RatePer time.Duration `event:"rate_per,max=744h"` // the time of Rate
	// how many of them may start at once after a pause; 0: one
	Burst int `event:"burst,max=1000000"`

	// how many of each group may start within GroupRatePer; 0: any number
	GroupRate int `event:"group_rate,max=1000000"`
	// the time of GroupRate
	GroupRatePer time.Duration `event:"group_rate_per,max=744h"`
	// how many of them may start at once after a pause; 0: one
	GroupBurst int `event:"group_burst,max=1000000"`

	// the wait that counts as much as one more of priority; 0: a priority always comes first
	Ageing time.Duration `event:"ageing,max=744h"`

	Reason string `event:"reason"`
}

// WorkerStarted: a worker process began. Boot, host, pid and version are in the envelope's Worker.
type WorkerStarted struct {
	Queues       []string `event:"queues,required"` // the queues that it serves
	Capabilities []string `event:"capabilities"`    // its labels
}

// WorkerStopped: a worker process ended in an orderly way.
type WorkerStopped struct{}

// Rebuilt: the projection was derived again from the events.
type Rebuilt struct {
	Jobs    int64 `event:"jobs"`    // rows derived
	Changed int64 `event:"changed"` // old rows that differed, were missing, or should not exist
	// rows that were missing, and were derived
	Missing int64 `event:"missing"`
	Extra   int64 `event:"extra"` // rows without an event, removed
}

// Restored: the ledger was restored from a backup.
type Restored struct {
	From string `event:"from"` // the file that was restored
	// that the backup held; this event follows them
	Events int64 `event:"events"`
	// events of the previous ledger that the backup lacks; nil: not known, or no previous ledger
	Lost *int `event:"lost,min=0"`

	// how many events the ledger that was replaced had; 0: it was not sealed, could not be read, or there was
	// none
	HeadSize int64 `event:"head_size"`
	// the root of the hash tree of that ledger, in base64; "": likewise
	HeadRoot string `event:"head_root"`
}

// Imported: the ledger's events came from a file.
type Imported struct {
	From   string `event:"from"`   // the file
	Events int64  `event:"events"` // that the file held
	// payloads and results that these events name and the file had not, other than erased ones
	MissingBodies int64 `event:"missing_bodies"`

	// the moment of the copy, which answers as of then; zero: the ledger is to be used
	AsOf time.Time `event:"as_of"`
}

// Sealing: from here on the ledger's events are sealed under this name. A later one replaces it.
type Sealing struct {
	Origin string `event:"origin,required"` // the name of the ledger in its checkpoints
	// the public key that checkpoints are signed with, NAME+HASH+KEY; "": none
	Key    string `event:"key"`
	Reason string `event:"reason"`
	Sealed bool   `event:"sealed"` // seal 1, of all events up to this one, was recorded with it
}
