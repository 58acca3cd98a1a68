// Package follow adds up what events say, as a reader goes along them from [projection.OpenEvents] or the
// first event: [Claims], the queues of jobs ([QueuesOf]) and how many jobs are in each state ([Tally]).
// [Transitions] goes along what matters for waits and depths, from any position. [Ready] is the rule for
// since when a job was ready.
//
// Held by TestReady and TestTransitionsEqualEvents here, and by TestFedEventByEventEqualsTheFold of web/view.
//
// This package is not part of the Go API, and may change in any release.
package follow

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Claim is the ownership of a job by one worker, as far as its events have been added.
type Claim struct {
	Pos           int64 // of its claimed event
	N             int64 // the job's number
	Job           event.JobID
	Queue         string
	Attempt       int
	Worker        event.Worker // that claimed; another of its processes may have taken the claim over
	ClaimedAt     time.Time
	LastHeartbeat time.Time // zero: none came
	Heartbeats    int
	LeaseUntil    time.Time
	End           *event.Event // nil: it is live
}

// Claims follows the claims along the events of a ledger, from the first event on or after
// projection.OpenEvents. It holds only the live ones.
type Claims struct{ live map[int64]*Claim }

// Add adds the next event, of a job in this queue, and returns the claim that it began, continued or ended.
// It returns nil if the event concerns no live claim; that of a refused write is over.
func (c *Claims) Add(e event.Event, queue string) *Claim {
	if c.live == nil {
		c.live = make(map[int64]*Claim)
	}
	if b, ok := e.Body.(*event.Claimed); ok {
		c.live[e.N] = &Claim{Pos: e.Pos, N: e.N, Job: e.Job, Queue: queue, Attempt: e.Attempt, Worker: e.Worker,
			ClaimedAt: e.At, LeaseUntil: b.LeaseUntil}
		return c.live[e.N]
	}
	claim := c.live[e.N]
	if claim == nil || e.Seq == 0 {
		return nil
	}
	if b, ok := e.Body.(*event.Heartbeat); ok {
		claim.LastHeartbeat, claim.LeaseUntil = e.At, b.LeaseUntil
		claim.Heartbeats++
	}
	if b, ok := e.Body.(*event.TakenOver); ok {
		claim.LastHeartbeat, claim.LeaseUntil = e.At, b.LeaseUntil
	}
	if e.Kind().EndsClaim() {
		claim.End = &e
		delete(c.live, e.N)
	}
	return claim
}

// Live returns the claims that have not ended, the oldest first.
func (c *Claims) Live() []*Claim {
	return slices.SortedFunc(maps.Values(c.live), func(a, b *Claim) int { return int(a.Pos - b.Pos) })
}

// QueuesOf maps events to the queues of their jobs, along the events of a ledger, from the first event on or
// after OpenEvents. It holds those of open jobs.
type QueuesOf struct {
	// Find returns the queue of a job that had ended and was retried, by the job's number.
	Find func(n int64) (string, error)
	open map[int64]string
}

// Add adds the next event and returns the queue of its job; "" if it concerns none.
func (q *QueuesOf) Add(e event.Event) (queue string, err error) {
	if e.N == 0 {
		return "", nil
	}
	if q.open == nil {
		q.open = make(map[int64]string)
	}
	queue, ok := q.open[e.N]
	if b, enqueued := e.Body.(*event.Enqueued); enqueued {
		queue, ok = b.Queue, true
	}
	if !ok {
		if queue, err = q.Find(e.N); err != nil {
			return "", err
		}
	}
	switch {
	case e.To.Final():
		delete(q.open, e.N)
	case e.Seq != 0:
		q.open[e.N] = queue
	}
	return queue, nil
}

// QueueAt returns the queue of job n, from its enqueued event.
func QueueAt(ctx context.Context, tx *ledger.Tx, n int64) (string, error) {
	e, found, err := tx.OneEvent(ctx, ledger.Filter{Job: n, Kinds: []event.Kind{event.KindEnqueued}})
	if !found {
		return "", err
	}
	return e.Body.(*event.Enqueued).Queue, nil
}

// Tally counts jobs by queue and state along the events of a ledger, without any table.
type Tally map[string]map[event.State]int64

// Add adds the next event, of a job in this queue.
func (t Tally) Add(e event.Event, queue string) {
	if e.Seq == 0 {
		return
	}
	if t[queue] == nil {
		t[queue] = make(map[event.State]int64)
	}
	if e.From != 0 {
		t[queue][e.From]--
	}
	t[queue][e.To]++
}
