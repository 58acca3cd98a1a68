package simtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// simSweeper sweeps with the program's Sweeper and keeps the leases it has seen, as the program does.
type simSweeper struct {
	sweeper *commands.Sweeper
	next    time.Time
	expired []projection.Lease // for sweepBlindly
}

func (w *simSweeper) reset() { *w = simSweeper{} }

func (w *simSweeper) act(p *process) time.Time {
	if w.sweeper == nil {
		w.sweeper = &commands.Sweeper{Actor: "sweeper:" + p.name}
		if p.broken == "no grace" {
			w.sweeper.Grace = new(time.Duration)
		}
	}
	w.sweeper.Service = p.service
	report, err := call(p, "sweep", nil, func() (commands.SweepReport, error) {
		switch p.broken {
		case "no sweeper":
			return commands.SweepReport{}, nil
		case "no CAS":
			return w.sweepBlindly(p)
		}
		return w.sweeper.Sweep(commandstest.BeforeWrite{Context: p.t.Context(), Act: p.letOthersAct})
	})
	if err != nil && !unknown(err) {
		p.find("answer", "sweep: %v", err)
	}
	every := 20 * time.Second
	if p.calm && report.Expired == 0 {
		every = 10 * time.Minute
	}
	if report.Waiting > 0 {
		every = min(every, max(report.Wait, 100*time.Millisecond))
	}
	w.next = time.Now().Add(every)
	return w.next
}

// simClient enqueues, and sometimes acts as an operator.
type simClient struct {
	unsure []commands.Enqueue // without an answer, to be sent again
	known  []event.JobID
	asked  int
}

// reset keeps what the client was going to send: a real client has it in its own database.
func (c *simClient) reset() {}

const simJobs = 8

func (c *simClient) act(p *process) time.Time {
	switch {
	case len(c.unsure) > 0:
		c.send(p)
	case p.calm:
		c.tidy(p)
	case c.asked < simJobs && p.chance(0.6):
		for range 1 + p.rng.IntN(2) {
			c.unsure = append(c.unsure, c.order(p))
		}
		c.send(p)
	case len(c.known) > 0:
		c.operate(p)
	}
	if p.calm && len(c.unsure) == 0 {
		return time.Now().Add(time.Hour)
	}
	return time.Now().Add(p.span(0, 25*time.Second))
}

// order returns a new job to enqueue.
func (c *simClient) order(p *process) commands.Enqueue {
	c.asked++
	e := commands.Enqueue{Queue: oneOf(p.rng, simQueues...), Payload: fmt.Append(nil, "payload ", c.asked),
		Priority:    p.rng.IntN(3) - 1,
		MaxAttempts: 1 + p.rng.IntN(4)}
	switch p.rng.IntN(3) {
	case 0:
		e.ID = p.newID()
	case 1:
		e.Key = fmt.Sprint("key ", c.asked)
	default:
		e.ID, e.Key = p.newID(), fmt.Sprint("key ", c.asked)
	}
	if p.chance(0.3) {
		e.RunAt = time.Now().Add(p.skew + p.span(-time.Minute, time.Minute))
	}
	if p.chance(0.2) {
		e.MaxRuntime = p.span(time.Second, 2*time.Minute)
	}
	if p.jobsWait() {
		c.drawWaiting(p, &e)
	}
	return e
}

// send enqueues its jobs, all or nothing, until an answer confirms them.
func (c *simClient) send(p *process) {
	got, err := call(p, fmt.Sprintf("enqueue %d jobs", len(c.unsure)), nil, func() ([]commands.Enqueued, error) {
		return p.service.Enqueue(p.t.Context(), "cli:client", c.unsure...)
	})
	if p.broken == "trusts unknown commits" && unknown(err) {
		for _, e := range c.unsure {
			got, err = append(got, commands.Enqueued{Job: projection.Job{ID: event.JobID(e.ID)}}), nil
		}
	}
	switch {
	case unknown(err):
		return
	case errors.Is(err, commands.ErrConflict) && mayConflict(c.unsure), err != nil && p.maybeGone(err):
		c.unsure = nil
		return
	case err != nil:
		p.find("answer", "enqueue: %v", err)
		return
	}
	for i, e := range got {
		j := p.oracle.jobs[e.ID]
		if j == nil {
			p.find("acknowledged and not there", "job %s", e.ID)
			return
		}
		if c.unsure[i].UniqueWhile == "" {
			j.payload = string(c.unsure[i].Payload)
		}
		if !slices.Contains(c.known, e.ID) {
			c.known = append(c.known, e.ID)
		}
	}
	c.unsure = nil
}

// operate changes a job or a queue. If the answer is lost, it does not ask again.
func (c *simClient) operate(p *process) {
	id, queue := oneOf(p.rng, c.known...), oneOf(p.rng, simQueues...)
	commandsOf := []commands.Command{commands.Cancel{}, commands.Retry{}, commands.Retry{},
		commands.Reschedule{Priority: new(p.rng.IntN(3))},
		commands.Reschedule{RunAt: new(time.Now().Add(p.skew + p.span(-time.Minute, time.Minute)))},
		commands.Erase{Reason: "asked for"}, commands.Unblock{}}
	if n := p.rng.IntN(len(commandsOf) + 2); n < len(commandsOf) {
		what := commandsOf[n]
		_, err := call(p, fmt.Sprintf("%T of %s", what, id), nil, func() (projection.Job, error) {
			return p.service.Apply(p.t.Context(), "cli:operator", id, what)
		})
		if err != nil && !unknown(err) && !errors.Is(err, commands.ErrConflict) && !p.maybeGone(err) {
			p.find("answer", "%T: %v", what, err)
		}
		return
	}
	do := p.service.Resume
	if p.chance(0.3) {
		do = p.service.Pause
	}
	_, err := call(p, "pause or resume "+queue, nil,
		func() (bool, error) { return do(p.t.Context(), "cli:operator", queue, "") })
	if err != nil && !unknown(err) {
		p.find("answer", "pause or resume: %v", err)
	}
}

// tidy resumes every queue and lifts every hold, so that all jobs can end.
func (c *simClient) tidy(p *process) {
	c.letRun(p)
	for _, queue := range simQueues {
		if _, err := p.service.Resume(p.t.Context(), "cli:operator", queue, ""); err != nil {
			p.find("answer", "resume: %v", err)
		}
	}
	p.oracle.look(p)
}
