package commandstest

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/limit"
)

// ManyWays returns a Scenario of two queues, mail and bill, whose jobs end in every way: on their own,
// because of the jobs that they wait for, and again after a retry. Some are held, wait, or are for later. The
// queue mail has limits, and the groups x and y.
func ManyWays(t testing.TB) *Scenario {
	t.Helper()
	s := New(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func(e commands.Enqueue, after ...projection.Job) projection.Job {
		t.Helper()
		for _, j := range after {
			e.After = append(e.After, commands.Dependency{Job: j.ID})
		}
		jobs, err := s.Enqueue(ctx, "cli:test", e)
		must(err)
		return jobs[0].Job
	}
	command := func(j projection.Job, c commands.Command) {
		t.Helper()
		_, err := s.Apply(ctx, "cli:test", j.ID, c)
		must(err)
	}
	claim := func() projection.Job {
		t.Helper()
		jobs, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Lease: time.Minute,
			Worker: event.Worker{Name: "w", Boot: "boot-w"}})
		must(err)
		if len(jobs) != 1 {
			t.Fatalf("claimed %d jobs, want 1", len(jobs))
		}
		return jobs[0]
	}
	pass := func() { s.Now = s.Now.Add(7 * time.Second) }
	_, err := s.Limit(ctx, "cli:test", "mail", limit.Spec{Running: 100, PerGroup: 9}, "r")
	must(err)
	for round := range 3 {
		plain := enqueue(commands.Enqueue{Queue: "bill", Priority: round})
		first := enqueue(commands.Enqueue{Queue: "mail", Group: "x"})
		second := enqueue(commands.Enqueue{Queue: "mail", Group: "x"}, first)
		enqueue(commands.Enqueue{Queue: "bill"}, second)
		held := enqueue(commands.Enqueue{Queue: "mail", Group: "y", Hold: true})
		enqueue(commands.Enqueue{Queue: "mail", Group: "y"}, held)
		enqueue(commands.Enqueue{Queue: "mail", Group: "y", RunAt: s.Now.Add(time.Hour)})
		pass()
		c := claim()
		for c.ID != first.ID { // the others stay claimed
			c = claim()
		}
		pass()
		if round == 1 {
			command(first, commands.Succeed{Token: c.Token})
		} else {
			command(first, commands.Fail{Token: c.Token, NoRetry: true}) // cancels what waits for it
		}
		pass()
		command(plain, commands.Cancel{Reason: "r"})
		if round == 0 {
			command(first, commands.Retry{}) // what waits for it waits again
			pass()
			claim()
		} else {
			command(held, commands.Cancel{Reason: "r"})
			command(plain, commands.Retry{})
		}
		pass()
	}
	return s
}
