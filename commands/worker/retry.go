package worker

import (
	"math/rand/v2"
	"time"
)

// What a worker does with the ledger, for the log.
const (
	toWrite  = "write"
	toLook   = "look for work"
	toAppear = "say that this worker is there"
)

// setback is a time during which the ledger fails: a full disk, say, which lasts. The worker goes on trying, but less
// and less often, and does not say the same again and again.
type setback struct {
	tries int
	since time.Time
	what  string // that it failed to do last
	said  string
	at    time.Time // when it was said
}

const (
	firstPatience = 50 * time.Millisecond
	maxPatience   = time.Second
	sayAgain      = 30 * time.Second
)

// note takes in another error, and reports whether to say it.
func (b *setback) note(what string, err error) bool {
	now := time.Now()
	if b.tries++; b.tries == 1 {
		b.since = now
	}
	b.what = what
	if b.said == err.Error() && now.Sub(b.at) < sayAgain {
		return false
	}
	b.said, b.at = err.Error(), now
	return true
}

// patience is how long to leave the ledger alone: not so long that a beat of such a lease comes too late for it.
func (b *setback) patience(lease time.Duration) time.Duration {
	d := min(firstPatience<<min(b.tries-1, 10), maxPatience, lease/12)
	return d + rand.N(d) // #nosec G404 -- no secret
}

// over reports whether success in what ends it. What could not be written may still not be, although something else can.
func (b *setback) over(what string) bool { return b.tries > 0 && (what == b.what || what == toWrite) }
