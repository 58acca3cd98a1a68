package claims

import (
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// SoleLane is the one lane from which a claim can take jobs, as the cache of the writer knows it. A burst
// claims from it without a search.
type SoleLane struct {
	Queue, Text string // of the lane
	Priority    int
	RunAt       int64  // no job of the lane is before this place: run_at, in microseconds,
	ID          string // and id
	Covers      int64  // as far as the events up to this pos say

	cache  *claimCache
	cursor *laneCursor
}

// FindSoleLane returns the only lane that fits; nil if there may be several, if the queue has limits, groups
// or a pause, or if the cache does not know.
func FindSoleLane(tx *ledger.Tx, want Want) *SoleLane {
	c, ok := tx.Cache().Value().(*claimCache)
	if !ok || len(want.Queues) != 1 || len(want.Except) > 0 || time.Since(c.listed) > maxSoleAge {
		return nil
	}
	queue := want.Queues[0]
	gate := c.gates[queue]
	if gate == nil || gate.Active() || c.grouped[queue] {
		return nil
	}
	var only *laneCursor
	for _, l := range c.queues[queue] {
		if !l.fits(want) {
			continue
		}
		if only != nil {
			return nil
		}
		only = l
	}
	if only == nil || only.version != "" || len(only.requires) > 0 {
		return nil
	}
	return &SoleLane{Queue: queue, Text: only.lane, Priority: only.priority, RunAt: only.runAt, ID: only.id,
		Covers: tx.Cache().Covers(), cache: c, cursor: only}
}

// Took notes in the cache that these jobs were claimed from the lane, all that were due at now or as many as
// limit. others says that jobs of other queues were queued since Covers.
func (l *SoleLane) Took(jobs []projection.Job, limit int, now time.Time, others bool) {
	c := l.cache
	for _, gate := range c.gates {
		gate.Forget()
	}
	if others {
		lanes, gate := c.queues[l.Queue], c.gates[l.Queue]
		listed := c.listed
		*c = *newClaimCache()
		c.queues[l.Queue], c.gates[l.Queue], c.grouped[l.Queue], c.listed = lanes, gate, false, listed
	}
	if len(jobs) > 0 {
		last := jobs[len(jobs)-1]
		l.cursor.moveTo(event.Micros(last.RunAt), string(last.ID))
		l.cursor.taken = true
	}
	if len(jobs) < limit {
		l.cursor.drain(now)
		c.speculation = speculation{}
		c.speculate([]*laneCursor{l.cursor}, limit, now)
		return
	}
	c.speculation = speculation{lane: l.cursor, busy: true, limit: limit, now: now, wall: time.Now()}
}

// MaxMissedEvents is how many events that the cache does not cover are too many for a burst: it must learn
// which of them queued a job, and which may concern all jobs.
const MaxMissedEvents = maxMissedOfSoleLane
