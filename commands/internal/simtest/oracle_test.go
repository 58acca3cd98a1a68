package simtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// oracle checks a simulated history: the ledger after each call, and the answers. It keeps its own record of
// every claim, has its own rules, and shares only the events with the program.
type oracle struct {
	sim    *sim
	store  *ledger.Store
	pos    int64
	at     time.Time
	digest [32]byte // of all events so far

	jobs      map[event.JobID]*simJob
	tokens    map[string]*simHold
	paused    map[string]bool
	refused   map[string]bool // by token and command
	disturbed time.Time       // when a clock last jumped; zero: never
}

// simJob is a job in the oracle's record.
type simJob struct {
	id                     event.JobID
	queue                  string
	seq                    int64
	ended                  event.State // 0: not ended
	attempt, failures, max int
	runtime                time.Duration
	live, latest           *simHold
	erased                 bool
	payload                string
	waiting
}

// simHold is one claim.
type simHold struct {
	job      *simJob
	token    string
	worker   event.Worker
	lease    time.Duration
	granted  time.Duration // the lease in its last event: until − at
	begun    time.Time     // by the true clock, as is lastBeat
	lastBeat time.Time
	how      event.Kind // how it ended; 0: it is live
}

func (o *oracle) begin(s *sim) {
	store, err := ledger.Open(s.t.Context(), ledgertest.Relaxed(s.path))
	if err != nil {
		s.t.Fatal(err)
	}
	*o = oracle{sim: s, store: store, jobs: make(map[event.JobID]*simJob), tokens: make(map[string]*simHold),
		paused: make(map[string]bool), refused: make(map[string]bool)}
	if s.seals() {
		if err := o.beginSealed(); err != nil {
			s.t.Fatal(err)
		}
		o.look(&process{name: "setup"})
	}
}

// open returns how many jobs have not ended.
func (o *oracle) open() (n int) {
	for _, j := range o.jobs {
		if j.ended == 0 {
			n++
		}
	}
	return n
}

func (o *oracle) stuck() (ids []event.JobID) {
	for _, j := range o.jobs {
		if j.ended == 0 {
			ids = append(ids, j.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// look reads the events that p's call has added to the ledger.
func (o *oracle) look(p *process) {
	err := o.store.Read(context.Background(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(context.Background(), ledger.Filter{After: o.pos}) {
			if err != nil {
				return err
			}
			if e.Pos != o.pos+1 || e.At.Before(o.at) {
				o.sim.find("order", "event %d at %s after event %d at %s", e.Pos, e.At, o.pos, o.at)
			}
			o.pos, o.at, o.digest = e.Pos, e.At, chain(o.digest, e)
			o.sim.counts[e.Kind().String()]++
			o.sim.say(p.name, "  %d %s %s seq %d attempt %d %s", e.Pos, e.Kind(), e.Job, e.Seq, e.Attempt, e.Token)
			o.event(p, e)
		}
		o.waitsInVain()
		return nil
	})
	if err != nil {
		o.sim.find("read", "%v", err)
	}
}

// chain returns a digest of e and everything before it.
func chain(before [32]byte, e event.Event) [32]byte {
	text, err := json.Marshal(event.Line{Event: e})
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(append(before[:], text...))
}

// event adds one event to the record.
func (o *oracle) event(p *process, e event.Event) {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		o.paused[b.Queue] = true
		return
	case *event.QueueResumed:
		o.paused[b.Queue] = false
		return
	case *event.WorkerStarted, *event.WorkerStopped, *event.Sealing, *event.Archived, *event.Removed:
		return
	case *event.Enqueued:
		if o.jobs[e.Job] != nil {
			o.sim.find("enqueued twice", "job %s", e.Job)
		}
		j := &simJob{id: e.Job, queue: b.Queue, seq: 1, max: b.MaxAttempts, runtime: b.MaxRuntime}
		o.jobs[e.Job] = j
		o.waits(j, b)
		return
	}
	j := o.jobs[e.Job]
	if j == nil {
		o.sim.find("no such job", "event %d is of job %s", e.Pos, e.Job)
		return
	}
	if e.Seq != 0 {
		if j.seq++; e.Seq != j.seq {
			o.sim.find("order", "job %s: seq %d after %d", j.id, e.Seq, j.seq-1)
		}
	}
	switch b := e.Body.(type) {
	case *event.Claimed:
		o.claimed(p, j, e)
	case *event.Heartbeat:
		if h := o.owner(p, j, e); h != nil {
			h.lastBeat, h.granted = time.Now(), b.LeaseUntil.Sub(e.At)
		}
	case *event.Succeeded:
		o.ownEnd(p, j, e, e.To == event.SucceededState)
	case *event.Failed:
		j.failures++
		o.ownEnd(p, j, e, e.To == event.FailedState || e.To == event.Queued && j.failures < j.max &&
			!b.RetryAt.IsZero())
	case *event.Released:
		o.ownEnd(p, j, e, e.To == event.Queued)
	case *event.Reclaimed:
		o.reclaimed(j, e)
	case *event.Cancelled:
		if j.ended != 0 {
			o.sim.find("transition", "job %s: cancelled after its end", j.id)
		}
		o.cancelled(j, b)
		o.close(j, e)
	case *event.Retried:
		if j.ended == 0 {
			o.sim.find("transition", "job %s: retried before its end", j.id)
		}
		j.ended, j.failures = 0, 0
		o.retried(j, e, b)
	case *event.Unblocked:
		o.unblocked(j, b)
	case *event.Replaced:
		if j.ended != 0 || j.live != nil {
			o.sim.find("transition", "job %s: replaced while it was not waiting", j.id)
		}
		j.digest, j.payload = b.PayloadSHA256, ""
	case *event.Rescheduled:
		if j.ended != 0 || j.live != nil {
			o.sim.find("transition", "job %s: rescheduled while it was not queued", j.id)
		}
	case *event.Erased:
		j.erased = true
		o.unwait(j) // it cannot run again
	case *event.Refused:
		if key := e.Token + b.Command; o.refused[key] {
			o.sim.find("refused twice", "job %s: %s with token %s", j.id, b.Command, e.Token)
		} else {
			o.refused[key] = true
		}
	}
}

// claimed checks that no other worker holds the job, that an attempt is left, and that token and attempt are
// new.
func (o *oracle) claimed(p *process, j *simJob, e event.Event) {
	h := &simHold{job: j, token: e.Token, worker: e.Worker, begun: time.Now(), lastBeat: time.Now(),
		granted: e.Body.(*event.Claimed).LeaseUntil.Sub(e.At)}
	if w, ok := p.actor.(*simWorker); ok {
		h.lease = w.lease
	}
	switch {
	case j.live != nil:
		o.sim.find("two live claims", "job %s: %s of %s and %s of %s", j.id, j.live.token, j.live.worker.Name,
			e.Token, e.Worker.Name)
	case j.ended != 0:
		o.sim.find("transition", "job %s: claimed after its end", j.id)
	case j.blocked || j.held || len(j.after) > 0:
		o.sim.find("claimed while blocked", "job %s waits for %v, held %t", j.id, j.after, j.held)
	case j.failures >= j.max:
		o.sim.find("tried too often", "job %s: claimed after %d failures of %d", j.id, j.failures, j.max)
	case e.Attempt != j.attempt+1:
		o.sim.find("attempt", "job %s: attempt %d after %d", j.id, e.Attempt, j.attempt)
	case o.tokens[e.Token] != nil || e.Token == "":
		o.sim.find("token", "job %s: token %q is not a new one", j.id, e.Token)
	case o.paused[j.queue]:
		o.sim.find("paused", "job %s: claimed from a paused queue", j.id)
	case e.Worker != p.worker():
		o.sim.find("owner", "job %s: claimed for %+v by %s", j.id, e.Worker, p.name)
	}
	j.attempt, j.live, j.latest, o.tokens[e.Token] = e.Attempt, h, h, h
	j.keyFree = j.keyFree || j.unique == event.WhileQueued
}

// owner checks that an event that only the owner may cause presented the live claim's token.
func (o *oracle) owner(p *process, j *simJob, e event.Event) *simHold {
	h := j.live
	switch {
	case h == nil:
		o.sim.find("fence", "job %s: %s while no worker holds it", j.id, e.Kind())
	case !slices.Contains(p.shows, h.token):
		o.sim.find("fence", "job %s: %s of the claim %s by %s, who showed %v", j.id, e.Kind(), h.token, p.name,
			p.shows)
	case e.Attempt != j.attempt || e.Token != h.token || e.Worker != h.worker:
		o.sim.find("owner", "job %s: %s names attempt %d of %s", j.id, e.Kind(), e.Attempt, e.Worker.Name)
	}
	return h
}

func (o *oracle) ownEnd(p *process, j *simJob, e event.Event, allowed bool) {
	o.owner(p, j, e)
	if !allowed {
		o.sim.find("tried too often", "job %s: %s to %s after %d failures of %d", j.id, e.Kind(), e.To, j.failures,
			j.max)
	}
	o.close(j, e)
}

// close ends the live claim, and the job if the event ends it.
func (o *oracle) close(j *simJob, e event.Event) {
	if j.live != nil {
		j.live.how, j.live = e.Kind(), nil
	}
	if e.To.Final() {
		j.ended = e.To
		o.passOn(j)
	}
}
