package follow

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// PastClaim is what the events of a job say about a token that is not live.
type PastClaim struct {
	Given   *event.Event // where the token was given; nil: never to this job
	Ending  *event.Event // how that claim ended; nil while it has not
	Latest  bool         // no later claim was made
	Stopped bool         // the end of its command is recorded
	Until   time.Time    // of its last Survived, or what a retry since waits for; zero: there is none
	Waits   bool         // the job was retried and waits for that end, or for a later time
	Refused bool         // the same command with this token was refused and recorded before
	Salt    []byte       // of the job's digests; nil once erased
}

// pastKinds are the kinds that ReadPast needs: all but heartbeats, of which there may be many.
var pastKinds = []event.Kind{event.KindClaimed, event.KindSucceeded, event.KindFailed,
	event.KindReleased, event.KindReclaimed, event.KindCancelled, event.KindRefused,
	event.KindRetried, event.KindRescheduled, event.KindTakenOver, event.KindStopped, event.KindSurvived}

// ReadPast reads what the events of j say about a token; command is the command that now uses it.
func ReadPast(ctx context.Context, tx *ledger.Tx, j projection.Job, token, command string) (c PastClaim,
	err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: pastKinds}) {
		if err != nil {
			return c, err
		}
		c.Add(e, token, command, j)
	}
	c.Salt, _, _, err = tx.Body(ctx, j.N)
	return c, err
}

// Add takes in the job's next event.
func (c *PastClaim) Add(e event.Event, token, command string, j projection.Job) {
	switch kind := e.Kind(); {
	case kind == event.KindClaimed && e.Token == token:
		c.Given, c.Latest = &e, true
	case kind == event.KindClaimed:
		c.Latest = false
	case kind == event.KindTakenOver && e.Token == token:
		c.Given = &e
	case kind == event.KindStopped && e.Token == token:
		c.Stopped = true
	case kind == event.KindSurvived && c.Given != nil && e.Attempt == c.Given.Attempt:
		c.Until = e.Body.(*event.Survived).LeaseUntil
	case kind == event.KindRetried:
		if at := e.Body.(*event.Retried).RunAt; at.IsZero() {
			c.Waits = false
		} else {
			c.Until, c.Waits = at, true
		}
	case kind == event.KindRescheduled:
		c.Waits = c.Waits && !e.Body.(*event.Rescheduled).RunAt.Before(c.Until)
	case kind == event.KindRefused && e.Token == token:
		c.Refused = c.Refused || e.Body.(*event.Refused).Command == command
	case kind.EndsClaim() && c.Given != nil && e.Attempt == c.Given.Attempt:
		c.Ending = &e
	}
}

// EndedInOrder reports whether an owner that is not a zombie may send a heartbeat for a claim that has ended:
// it has ended the claim itself, and the heartbeat was under way; or the job was cancelled, of which a
// heartbeat is how the owner learns.
func (c *PastClaim) EndedInOrder() bool {
	if c.Ending == nil {
		return false
	}
	switch c.Ending.Body.(type) {
	case *event.Succeeded, *event.Failed, *event.Released:
		return true
	case *event.Cancelled:
		return c.Latest
	}
	return false
}
