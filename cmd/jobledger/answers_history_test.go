package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/keyframe"
	"jobledger/projection/limit"
)

// generated is a history that random producers, workers, operators and schedules make, with what is rare in a
// real one: jobs that wait for others, holds, replaced payloads, priorities, retries of cancelled jobs,
// takeovers, commands that outlive their claims.
type generated struct {
	*scenario
	random *rand.Rand
	procs  []event.Worker
	alive  []bool
	claims []projection.Job
	jobs   []event.JobID
	moment int // numbers what is made
}

var generatedQueues = []string{"mail", "web", "reports", "nightly", "bulk"}

func newGenerated(t *testing.T, seed uint64) *generated {
	t.Helper()
	g := &generated{scenario: newScenario(t), random: rand.New(rand.NewPCG(seed, 34))}
	spec := event.ScheduleSet{Name: "digest", Queue: "nightly", Every: 20 * time.Minute, Payload: "digest"}
	_, _, err := g.keeper().Set(t.Context(), spec, "each 20 minutes")
	check(t, err)
	for range 4 {
		g.start()
	}
	return g
}

func (g *generated) keeper() *schedule.Keeper {
	return &schedule.Keeper{Service: g.Service, Actor: "cli:ada@build7"}
}

// start starts one more worker process: of a name that was there before, on its host.
func (g *generated) start() {
	n := len(g.procs)
	w := event.Worker{Name: fmt.Sprint("w", n%5), Boot: fmt.Sprintf("01KDY9FY88BT0000000000%04d", n),
		Host: []string{"alpha", "bravo"}[n%5%2], PID: 100 + n, Version: fmt.Sprint("v", 1+n/6)}
	check(g.T, g.WorkerStarted(g.T.Context(), w, generatedQueues, []string{"gpu"}))
	g.procs, g.alive = append(g.procs, w), append(g.alive, true)
}

// one is a process that lives; ok is false where none does.
func (g *generated) one() (i int, ok bool) {
	for range 20 {
		if i = g.random.IntN(len(g.procs)); g.alive[i] {
			return i, true
		}
	}
	return 0, false
}

// apply is Service.Apply; refusals and conflicts are part of the history.
func (g *generated) apply(actor string, id event.JobID, c commands.Command) {
	g.T.Helper()
	if _, err := g.Apply(g.T.Context(), actor, id, c); err != nil && ledgerFailed(err) {
		g.T.Fatal(err)
	}
}

func (g *generated) enqueueOne() {
	g.T.Helper()
	r := g.random
	e := commands.Enqueue{Queue: generatedQueues[r.IntN(3)], Payload: []byte(fmt.Sprint("p", g.moment)),
		Priority: r.IntN(3), MaxAttempts: 1 + r.IntN(3), Tags: map[string]string{"customer": fmt.Sprint(r.IntN(3))}}
	switch r.IntN(9) {
	case 0:
		e.RunAt = g.Now.Add(time.Duration(r.IntN(300)) * time.Second)
	case 1:
		e.Key, e.UniqueWhile = fmt.Sprint("u", r.IntN(6)), event.WhileQueued
		e.OnDuplicate = commands.ReplaceDuplicate
	case 2:
		e.Group = fmt.Sprint("g", r.IntN(3))
	case 3:
		e.MaxRuntime = 2 * time.Minute
	case 4, 5:
		for range 1 + r.IntN(2) {
			if len(g.jobs) > 0 {
				on := []event.Ending{event.OnSucceeded, event.OnFailed, event.OnFinished}[r.IntN(3)]
				e.After = append(e.After, commands.Dependency{Job: g.jobs[max(0, len(g.jobs)-1-r.IntN(12))], On: on})
			}
		}
		if len(e.After) == 2 && e.After[0].Job == e.After[1].Job {
			e.After = e.After[:1]
		}
	case 6:
		e.Hold = true
	}
	made, err := g.Enqueue(g.T.Context(), "cli:ada@build7", e)
	if err != nil && ledgerFailed(err) {
		g.T.Fatal(err)
	}
	if err == nil {
		g.jobs = append(g.jobs, made[0].Job.ID)
	}
}

// step does one random thing.
func (g *generated) step() {
	g.T.Helper()
	ctx, r := g.T.Context(), g.random
	g.moment++
	if r.IntN(4) > 0 { // sometimes several events have one time
		g.wait(time.Duration(r.IntN(9_000_000)) * time.Microsecond)
	}
	switch what := r.IntN(100); {
	case what < 26:
		g.enqueueOne()
	case what < 46:
		i, ok := g.one()
		if !ok {
			g.start()
			return
		}
		w := g.procs[i]
		found, err := g.Claim(ctx, commands.ClaimRequest{Queues: generatedQueues, Worker: w, Version: w.Version,
			Capabilities: []string{"gpu"}, Lease: time.Minute, Limit: 1 + r.IntN(2)})
		check(g.T, err)
		g.claims = append(g.claims, found...)
	case what < 80:
		g.act()
	case what < 91:
		g.operate()
	case what < 94:
		g.process()
	default:
		none := time.Duration(0)
		sweeper := commands.Sweeper{Service: g.Service, Actor: "sweeper:alpha", Grace: &none, Pause: 1}
		_, err := sweeper.Sweep(ctx)
		check(g.T, err)
		ticker := schedule.Ticker{Service: g.Service, Actor: "sweeper:alpha", Pause: 1}
		_, err = ticker.Tick(ctx)
		check(g.T, err)
	}
}

// act is something that the owner of a claim does, which may be lost by now.
func (g *generated) act() {
	r := g.random
	if len(g.claims) == 0 {
		return
	}
	k := max(0, len(g.claims)-1-r.IntN(4))
	j := g.claims[k]
	for i, w := range g.procs {
		if w.Boot == j.Worker.Boot && !g.alive[i] {
			g.claims = append(g.claims[:k], g.claims[k+1:]...)
			return
		}
	}
	actor := "worker:" + j.Worker.Name
	part, code, again := r.Float64(), r.IntN(3), time.Duration(r.IntN(100))*time.Second
	details := []string{"connection to 10.0.0.%d refused", "at line 3\nno such file '/srv/%d.pdf'\n",
		"user %d is gone"}
	detail := fmt.Sprintf(details[r.IntN(3)], g.moment)
	cost := event.Cost{CPUUser: time.Duration(g.moment%97) * 1234567 * time.Microsecond,
		CPUSystem: time.Duration(g.moment%13) * time.Microsecond, MaxRSS: int64(g.moment%89) << 20}
	switch r.IntN(12) {
	case 0, 1:
		g.apply(actor, j.ID, commands.Heartbeat{Token: j.Token, Lease: time.Minute, Progress: &part, Note: "half"})
		return
	case 2:
		g.apply(actor, j.ID, commands.Fail{Token: j.Token, Code: "smtp", Detail: detail, ExitCode: &code,
			RetryIn: &again, Cost: cost})
	case 3:
		g.apply(actor, j.ID, commands.Fail{Token: j.Token, Code: "timeout", Detail: detail, Signal: "KILL",
			NoRetry: r.IntN(2) == 0, Cost: cost})
	case 4:
		g.apply(actor, j.ID, commands.Release{Token: j.Token, Reason: "deploy", Snooze: r.IntN(2) == 0,
			Cost: cost})
	case 5:
		g.apply(actor, j.ID, commands.ReportStop{Token: j.Token, Cost: cost})
		return
	case 6: // another process of its worker goes on, and may do nothing more
		p := j.Worker
		p.Boot, p.PID = fmt.Sprintf("01KDY9FY88BT0000000001%04d", g.moment), p.PID+1000
		check(g.T, g.WorkerStarted(g.T.Context(), p, generatedQueues, []string{"gpu"}))
		g.wait(time.Duration(r.IntN(3_000_000)) * time.Microsecond)
		g.apply(actor, j.ID, commands.TakeOver{Token: j.Token, Process: p, Lease: time.Minute})
	default:
		g.apply(actor, j.ID, commands.Succeed{Token: j.Token, Result: []byte("ok"), ExitCode: new(int),
			Cost: cost, AfterMaxRuntime: g.moment%2 == 0})
	}
	g.claims = append(g.claims[:k], g.claims[k+1:]...)
}

// operate is something that an operator does.
func (g *generated) operate() {
	r, ctx := g.random, g.T.Context()
	if len(g.jobs) == 0 {
		return
	}
	some := func() event.JobID { return g.jobs[max(0, len(g.jobs)-1-r.IntN(30))] }
	waiting := func() event.JobID {
		found, err := g.List(ctx, projection.Filter{States: []event.State{event.Queued}, Limit: 1 + r.IntN(6)})
		check(g.T, err)
		if len(found) == 0 {
			return some()
		}
		return found[len(found)-1].ID
	}
	actor := []string{"cli:ada@build7", "cli:bob@build8"}[r.IntN(2)]
	later, priority := g.Now.Add(time.Duration(r.IntN(2)*r.IntN(300))*time.Second), r.IntN(9)
	switch r.IntN(11) {
	case 0:
		g.apply(actor, some(), commands.Cancel{Reason: "wrong"})
	case 1:
		g.apply(actor, some(), commands.Retry{Reason: "again",
			Delay: time.Duration(r.IntN(2)*r.IntN(99)) * time.Second})
	case 2:
		g.apply(actor, waiting(), commands.Edit{MaxRuntime: 90*time.Hour + time.Duration(g.moment%7)*
			time.Minute, Reschedule: commands.Reschedule{RunAt: &later, Reason: "later"}})
	case 3, 4:
		g.apply(actor, waiting(), commands.Reschedule{Priority: &priority, Reason: "first"})
	case 5:
		g.apply(actor, some(), commands.Unblock{Reason: "go"})
	case 6:
		g.apply(actor, some(), commands.Erase{Reason: "asked to"})
	case 7: // two operators act on many jobs at once
		for range 6 {
			g.apply("cli:ada@build7", some(), commands.Retry{Reason: "all of it"})
			g.apply("cli:bob@build8", some(), commands.Cancel{Reason: "none of it"})
		}
	case 8:
		set := g.Pause
		if r.IntN(3) > 0 {
			set = g.Resume
		}
		_, err := set(ctx, actor, generatedQueues[r.IntN(3)], fmt.Sprint("because ", g.moment))
		check(g.T, err)
	case 9:
		_, err := g.Limit(ctx, actor, "web", limit.Spec{Running: r.IntN(4)}, "")
		check(g.T, err)
	default:
		id := some()
		g.apply(actor, id, commands.Cancel{Reason: "and back"})
		g.wait(time.Second)
		g.apply(actor, id, commands.Retry{Reason: "and back", Now: r.IntN(2) == 0})
	}
}

// process starts a process, or one ends: in order, or without a word.
func (g *generated) process() {
	i, ok := g.one()
	switch r := g.random.IntN(3); {
	case r == 0 || !ok:
		g.start()
	case r == 1:
		g.alive[i] = false
		check(g.T, g.WorkerStopped(g.T.Context(), g.procs[i]))
	default:
		g.alive[i] = false
	}
}

// generatedHistory is a history of some hundred steps.
func generatedHistory(t *testing.T) *scenario {
	g := newGenerated(t, 1)
	for range answersSize(800, 2500) {
		g.step()
	}
	g.wait(20 * time.Second) // some claims are held, some leases have run out
	return g.scenario
}

// keyframedHistory is a history with keyframes: some hundred steps before, among and after many jobs that are
// worked on in bulk.
func keyframedHistory(t *testing.T) *scenario {
	g := newGenerated(t, 2)
	const bulk = 64
	for round := range 2 * keyframe.Every / bulk / 4 {
		if round%8 == 0 {
			for range 10 {
				g.step()
			}
		}
		list := make([]commands.Enqueue, bulk)
		for i := range list {
			list[i] = commands.Enqueue{Queue: "bulk", Payload: []byte("p"), Priority: i % 3}
		}
		_, err := g.Enqueue(t.Context(), "cli:ada@build7", list...)
		check(t, err)
		g.wait(time.Duration(g.random.IntN(4_000_000)) * time.Microsecond)
		w := g.procs[0]
		var ops []commands.Op
		for range 2 {
			found, err := g.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"bulk"}, Worker: w,
				Version: w.Version, Capabilities: []string{"gpu"}, Limit: 28, Lease: time.Hour})
			check(t, err)
			for i, j := range found {
				switch {
				case i%25 == 0: // it stays with its worker
				case i%9 == 0:
					ops = append(ops, commands.Op{Job: j, Command: commands.Fail{Token: j.Token, Code: "smtp",
						Detail: fmt.Sprintf("port %d", i), NoRetry: i%2 == 0}})
				default:
					ops = append(ops, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
				}
			}
		}
		g.wait(time.Duration(g.random.IntN(4_000_000)) * time.Microsecond)
		_, err = g.ApplyBatch(t.Context(), "worker:"+w.Name, ops)
		check(t, err)
	}
	for range 40 {
		g.step()
	}
	sweeper := commands.Sweeper{Service: g.Service, Actor: "sweeper:alpha", Pause: 1}
	_, err := sweeper.Sweep(t.Context())
	check(t, err)
	for range 25 {
		g.step()
	}
	g.wait(20 * time.Second)
	return g.scenario
}

// nightHistory is the bad night, some hours after it.
func nightHistory(t *testing.T) *scenario {
	s := importNight(t)
	s.Now = morning
	return s
}
