package event

import (
	"math"
	"time"
)

// Backoff says how long a job waits before it is tried again: Min after the first failure, after each further
// one Factor times as long, up to Max. The zero Backoff is DefaultBackoff.
type Backoff struct {
	// the wait after the first failure: 1 ms to 31 days, in whole microseconds; 0: all three are the default,
	// 1 s, doubled up to 1 h
	Min time.Duration `event:"backoff_min"`
	// the longest wait after a failure
	Max time.Duration `event:"backoff_max"`
	// each wait is so many times as long as the one before: 1 to 100, in thousandths
	Factor float64 `event:"backoff_factor"`
}

// DefaultBackoff is the backoff of jobs without one of their own.
var DefaultBackoff = Backoff{Min: time.Second, Max: time.Hour, Factor: 2}

// The bounds of a Backoff.
const (
	MinBackoff = time.Millisecond
	MaxBackoff = 31 * 24 * time.Hour
	MaxFactor  = 100
)

// Wait returns how long a job waits after its nth failure, before any jitter.
func (b Backoff) Wait(n int) time.Duration {
	if b == (Backoff{}) {
		b = DefaultBackoff
	}
	thousandths := int64(math.Round(b.Factor * 1000)) // integers give the same wait on each processor
	wait, most := b.Min.Microseconds(), b.Max.Microseconds()
	for i := 1; i < n && wait < most && thousandths > 1000; i++ {
		wait = wait * thousandths / 1000
	}
	return time.Duration(min(wait, most)) * time.Microsecond
}

// Valid reports whether b is zero, or within the bounds.
func (b Backoff) Valid() bool {
	whole := b.Min%time.Microsecond == 0 && b.Max%time.Microsecond == 0 &&
		b.Factor == math.Round(b.Factor*1000)/1000
	return b == Backoff{} ||
		whole && b.Min >= MinBackoff && b.Max >= b.Min && b.Max <= MaxBackoff && b.Factor >= 1 &&
			b.Factor <= MaxFactor
}

func (b *Backoff) fields(f *fields) {
	f.duration("backoff_min", &b.Min)
	f.duration("backoff_max", &b.Max)
	var factor *float64
	if !f.read && b.Factor != 0 {
		factor = &b.Factor
	}
	f.number("backoff_factor", &factor)
	if f.read && factor != nil {
		b.Factor = *factor
	}
}

// QueueDefaults: jobs that are enqueued into the queue from now on have these values unless they set their
// own. It sets all of them; a zero value means that the queue has no such default.
type QueueDefaults struct {
	Queue       string        `event:"queue,label,required"`
	MaxAttempts int           `event:"max_attempts"`
	MaxRuntime  time.Duration `event:"max_runtime"`
	Backoff     Backoff
	Reason      string `event:"reason"`
	// its jobs carry their commands, and no other job is accepted
	Commands bool `event:"commands"`
}

// Kind returns KindQueueDefaults.
func (*QueueDefaults) Kind() Kind { return KindQueueDefaults }

func (b *QueueDefaults) fields(f *fields) {
	f.text("queue", &b.Queue)
	f.sparse = true
	f.int("max_attempts", &b.MaxAttempts)
	f.duration("max_runtime", &b.MaxRuntime)
	b.Backoff.fields(f)
	f.text("reason", &b.Reason)
	f.flag("commands", &b.Commands)
}
