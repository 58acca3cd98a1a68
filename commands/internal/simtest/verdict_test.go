package simtest

import (
	"errors"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// reclaimed checks that the claim sent no heartbeat for at least two intervals, by the true clock, whatever
// other clocks showed. If no clock was ever wrong, it must have been for its lease and two intervals.
func (o *oracle) reclaimed(j *simJob, e event.Event) {
	j.failures++
	if h := j.live; h == nil || e.Token != h.token {
		o.sim.find("reclaim", "job %s: reclaimed from %q, but not the live claim", j.id, e.Token)
	} else if silent, least := o.sinceHeartbeat(j, h); silent < least {
		o.sim.find("live job reclaimed", "job %s: %s after the last sign of life, its lease is %s", j.id, silent,
			h.lease)
	}
	if e.To == event.Queued && j.failures >= j.max {
		o.sim.find("tried too often", "job %s: to be retried after failure %d of %d", j.id, j.failures, j.max)
	}
	o.close(j, e)
}

// answer checks the answer to an owner.
func (o *oracle) answer(id event.JobID, token string, c commands.Command, err error) {
	h := o.tokens[token]
	if h == nil || h.job.id != id {
		o.sim.find("answer", "job %s: %T with token %s, which the ledger does not know: %v", id, c, token, err)
		return
	}
	_, beats := c.(commands.Heartbeat)
	own := h.how == event.KindSucceeded || h.how == event.KindFailed || h.how == event.KindReleased
	right := false
	switch {
	case err == nil && beats:
		right = h.how == 0 && h.lastBeat.Equal(time.Now())
	case err == nil:
		right = h.how == kindOfEnd(c)
	case errors.Is(err, commands.ErrLeaseLost):
		right = h.how == event.KindReclaimed || h.how == event.KindCancelled && h.job.latest != h
	case errors.Is(err, commands.ErrCancelled):
		// claimed later in the same call
		right = h.how == event.KindCancelled && (h.job.latest == h || h.job.latest.begun.Equal(time.Now()))
	case errors.Is(err, commands.ErrConflict):
		right = own && (h.how != kindOfEnd(c) || h.job.erased)
	}
	if !right {
		o.sim.find("answer", "job %s: %T with token %s was answered with %v, but the claim is %q", id, c, token,
			err, h.how)
	}
}

// sinceHeartbeat returns how long h has sent no heartbeat, and how long that must last before it may be
// reclaimed. Two intervals are two thirds of the lease in its last event; a max runtime ends a lease by the
// wall clock, with or without heartbeats.
func (o *oracle) sinceHeartbeat(j *simJob, h *simHold) (silent, least time.Duration) {
	silent, least = time.Since(h.lastBeat), h.granted*2/3
	if h.granted < commands.MinLease {
		least = commands.DefaultLease * 2 / 3
	}
	switch {
	case j.runtime > 0 && o.disturbed.IsZero():
		return time.Since(h.begun), min(j.runtime, h.lease)
	case j.runtime > 0:
		return silent, 0
	case o.disturbed.IsZero():
		least += h.lease
	}
	return silent, least
}

func kindOfEnd(c commands.Command) event.Kind {
	switch c.(type) {
	case commands.Succeed:
		return event.KindSucceeded
	case commands.Fail:
		return event.KindFailed
	case commands.Release:
		return event.KindReleased
	}
	return 0
}

// end reads everything again, as a new process would.
func (o *oracle) end() {
	if err := o.store.Close(); err != nil {
		o.sim.find("close", "%v", err)
	}
	store, err := ledger.Open(o.sim.t.Context(), ledgertest.Relaxed(o.sim.path))
	if err != nil {
		o.sim.find("open", "%v", err)
		return
	}
	defer store.Close()
	var pos int64
	var digest [32]byte
	for l, err := range o.every(store) {
		if err != nil {
			o.sim.find("read", "%v", err)
			break
		}
		pos, digest = l.Pos, chain(digest, l.Event)
	}
	err = store.Read(o.sim.t.Context(), func(tx *ledger.Tx) error {
		if pos != o.pos || digest != o.digest {
			o.sim.find("lost", "%d events are not the %d that have been seen", pos, o.pos)
		}
		v, err := audit.Verify(o.sim.t.Context(), tx, nil)
		for _, f := range v.Findings {
			o.sim.find("verify", "%+v", f)
		}
		if err == nil {
			err = o.countBlocks(tx)
		}
		return err
	})
	if err != nil {
		o.sim.find("read", "%v", err)
	}
}
