package worker

import "time"

// maxContention bounds how far workers that compete for the same jobs yield to each other.
const maxContention = 8

// poller decides when a worker with free slots asks the ledger for jobs. It does no I/O and reads no clock:
// the loop reports each event with its time and asks next what to do.
//
// An idle worker reads, because a claim takes the write lock even if nothing is ready. It reads when the next
// job is due, when it is notified, and every interval in case a notification was lost. A notified worker
// claims without a read, unless the last such claim found nothing.
type poller struct {
	interval time.Duration                           // between two reads without a notification
	random   func(limit time.Duration) time.Duration // from [0, limit); spreads workers out in time

	phase        pollPhase
	until        time.Time // the end of phase pollIdle or pollYield
	spuriousWake bool      // the last claim without a read found nothing; the next notification leads to a read
	contention   int       // claims lost to other workers of late, up to maxContention
}

// pollPhase is what a poller knows about the ledger. The zero value knows nothing.
type pollPhase int

const (
	pollUnknown  pollPhase = iota // a job may be ready
	pollIdle                      // nothing is ready before poller.until
	pollYield                     // others claimed first and go ahead until poller.until; jobs may be ready
	pollNotified                  // the ledger has changed since the last claim
	pollSawReady                  // the last read saw a ready job, and nothing has been claimed since
)

// pollAction is what a worker with free slots does next.
type pollAction int

const (
	pollRest  pollAction = iota // wait for poller.wait, or for an event
	pollRead                    // ask whether a job is ready
	pollClaim                   // claim without a read
)

// next returns what to do at now. It changes nothing.
func (p *poller) next(now time.Time) pollAction {
	switch {
	case p.resting() && now.Before(p.until):
		return pollRest
	case p.phase == pollNotified:
		return pollClaim
	}
	return pollRead
}

// idle reports whether nothing was ready when the poller last learned about it.
func (p *poller) idle() bool { return p.phase == pollIdle }

// resting reports whether the poller asks for nothing until poller.until.
func (p *poller) resting() bool { return p.phase == pollIdle || p.phase == pollYield }

// wait returns how long next is going to say pollRest; it is not positive if next says something else.
func (p *poller) wait(now time.Time) time.Duration {
	if !p.resting() {
		return 0
	}
	return p.until.Sub(now)
}

// notified takes in that the ledger has changed. After lost races it adds jitter, to avoid a thundering herd.
func (p *poller) notified(now time.Time) {
	switch {
	case p.contention > 0:
		if at := now.Add(p.jitter()); !p.resting() || at.Before(p.until) {
			p.until = at
		}
		p.phase = pollYield
	case p.spuriousWake:
		p.phase = pollUnknown
	default:
		p.phase = pollNotified
	}
}

// sawReady takes in that a read found a ready job. The caller claims at once.
func (p *poller) sawReady() { p.phase = pollSawReady }

// sawNothing takes in that a read found nothing ready.
func (p *poller) sawNothing(now time.Time) {
	p.rest(now.Add(p.interval + p.random(p.interval/4+1)))
}

// sawDue takes in that a read found nothing ready, but a job that is due after dueIn.
func (p *poller) sawDue(now time.Time, dueIn time.Duration) {
	p.sawNothing(now)
	if at := now.Add(dueIn + p.jitter()); at.Before(p.until) {
		p.until = at
	}
}

// readFailed takes in that a read has failed, so nothing is known.
func (p *poller) readFailed() { p.phase = pollUnknown }

// sawOnlyDamaged takes in that every ready job is damaged. It does not help to try again soon.
func (p *poller) sawOnlyDamaged(now time.Time) { p.rest(now.Add(p.interval)) }

// claimed takes in that a claim of up to limit jobs returned n; limit 0 means that nothing was claimed.
func (p *poller) claimed(now time.Time, limit, n int) {
	before := p.phase
	if before != pollIdle && before != pollYield || limit > 0 {
		p.phase = pollUnknown // there may be more, and it is not known when the next job is due
	}
	switch {
	case limit == 0:
	case n > 0:
		p.spuriousWake, p.contention = false, max(0, p.contention-1)
	case before == pollNotified:
		p.spuriousWake = true
	case before == pollSawReady: // another worker has claimed it
		p.contention = min(p.contention+1, maxContention)
		p.phase, p.until = pollYield, now.Add(p.jitter())
	}
}

func (p *poller) rest(until time.Time) { p.phase, p.until = pollIdle, until }

// jitter grows with the contention.
func (p *poller) jitter() time.Duration {
	return p.random(time.Duration(p.contention+1) * time.Millisecond)
}
