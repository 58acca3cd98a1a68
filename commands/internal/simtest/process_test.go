package simtest

import (
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// process is one process on the simulated machine.
type process struct {
	*sim
	name    string
	boots   int
	service *commands.Service // nil: it is dead
	skew    time.Duration     // error of its wall clock
	wakes   time.Time         // when it acts next
	actor   actor
	shows   []string // the tokens of the call in progress
}

// actor is the behaviour of a process. It is called when the process acts, and returns when it acts next.
type actor interface {
	act(p *process) (next time.Time)
	reset() // lose everything that was only in memory
}

func (s *sim) host(name string, a actor) {
	p := &process{sim: s, name: name, actor: a, wakes: time.Now().Add(s.span(0, 5*time.Second))}
	s.hosts = append(s.hosts, p)
	p.start()
}

func (p *process) start() {
	if p.service != nil {
		return
	}
	store, err := ledger.Open(p.t.Context(), ledgertest.Relaxed(p.path))
	if err != nil {
		p.t.Fatalf("seed %d: open: %v", p.seed, err)
	}
	store.Exclusive = true // no goroutine calls while another one does
	store.Now = func() time.Time { return time.Now().Add(p.skew) }
	p.service = &commands.Service{Store: store, NewID: p.newID, NewSalt: p.newSalt}
	p.boots++
	p.say(p.name, "starts, boot %d", p.boots)
}

func (p *process) stop() {
	if p.service == nil {
		return
	}
	if err := p.service.Store.Close(); err != nil {
		p.find("close", "%v", err)
	}
	p.service = nil
}

// worker returns the identity that the process claims with.
func (p *process) worker() event.Worker {
	return event.Worker{Name: p.name, Boot: fmt.Sprint(p.name, "-", p.boots), PID: 1000 + p.boots}
}

func (p *process) turn() {
	p.start()
	p.interfere()
	p.wakes = p.actor.act(p)
	if wait := time.Until(p.wakes); wait <= 0 {
		p.wakes = time.Now().Add(p.span(time.Millisecond, 20*time.Millisecond))
	}
}

// letOthersAct runs the other workers during a call of p. Frozen workers wake up and send heartbeats at once.
func (p *process) letOthersAct() {
	for _, other := range p.hosts {
		w, ok := other.actor.(*simWorker)
		if !ok || other == p || p.calm || len(w.tasks) == 0 || p.chance(0.3) {
			continue
		}
		p.say(p.name, "is overtaken by %s", other.name)
		p.counts["overtaken"]++
		for _, t := range w.tasks {
			t.beats = time.Now()
		}
		if w.sweeps != nil {
			w.sweeps.next = time.Now().Add(time.Second) // it interrupts p and is not interrupted itself
		}
		other.turn()
	}
}

// pause freezes the process; when it continues, it does what was due meanwhile.
func (p *process) pause(d time.Duration) {
	p.counts["paused"]++
	p.say(p.name, "stands still for %s", d)
	if until := time.Now().Add(d); p.wakes.Before(until) {
		p.wakes = until
	}
}

// die kills the process. It is restarted some time later, or when the faults end.
func (p *process) die() {
	p.counts["died"]++
	p.say(p.name, "dies")
	p.stop()
	p.actor.reset()
	p.wakes = time.Now().Add(p.span(0, 2*time.Minute))
}

func (p *process) jump(by time.Duration) {
	p.counts["clock jumped"]++
	p.say(p.name, "its clock is off by %s, was %s", by, p.skew)
	p.skew = by
	p.oracle.disturbed = time.Now()
}

// call is one call of the service, with the tokens that it presents. The request or the answer may get lost,
// or the outcome may be unknown.
func call[T any](p *process, what string, shows []string, do func() (T, error)) (answer T, err error) {
	var none T
	p.counts["calls"]++
	p.shows = shows
	f := p.faults
	if p.calm {
		f = faults{}
	}
	if p.chance(f.requestLost) {
		p.say(p.name, "%s: lost on the way there", what)
		p.counts["requests lost"]++
		return none, errSimLost
	}
	next := commandstest.Acknowledged
	if p.chance(f.rolledBack) {
		next = commandstest.RolledBack
	} else if p.chance(f.unacknowledged) {
		next = commandstest.Unacknowledged
	}
	before := p.commits.Seen()
	p.commits.Once(next)
	answer, err = do()
	p.commits.By(nil)
	if p.commits.Seen() > before {
		p.oracle.look(p)
	}
	switch {
	case errors.Is(err, ledger.ErrUnknown):
		p.say(p.name, "%s: the outcome is unknown", what)
		p.counts["unknown"]++
		return none, err
	case p.chance(f.answerLost):
		p.say(p.name, "%s: carried out, the answer lost", what)
		p.counts["answers lost"]++
		return none, errSimLost
	case err != nil:
		p.say(p.name, "%s: %v", what, err)
	}
	return answer, err
}
