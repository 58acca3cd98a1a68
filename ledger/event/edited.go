package event

import "time"

// Edited: an operator changed what a job that waits may take, or which workers take it.
// States: queued → queued; blocked → blocked.
type Edited struct {
	MaxAttempts int           `event:"max_attempts"` // 0: as before
	MaxRuntime  time.Duration `event:"max_runtime"`  // of its attempts from now on; 0: as before
	Backoff     Backoff       // zero: as before
	Requires    []string      `event:"requires,label"` // all labels from now on; none: as before
	Reason      string        `event:"reason"`
}

// Kind returns KindEdited.
func (*Edited) Kind() Kind { return KindEdited }

func (b *Edited) fields(f *fields) {
	f.sparse = true
	f.int("max_attempts", &b.MaxAttempts)
	f.duration("max_runtime", &b.MaxRuntime)
	b.Backoff.fields(f)
	f.list("requires", &b.Requires)
	f.text("reason", &b.Reason)
}
