package main

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// scenario is a ledger with events of every kind, with the same ids and salts in every run.
type scenario struct{ *commandstest.Scenario }

func newScenario(t testing.TB) *scenario {
	t.Helper()
	s := &scenario{commandstest.New(t)}
	s.Numbered()
	return s
}

func (s *scenario) wait(d time.Duration) { s.Now = s.Now.Add(d) }

func (s *scenario) enqueue(e commands.Enqueue) projection.Job {
	s.T.Helper()
	jobs, err := s.Enqueue(s.T.Context(), "cli:ada@build7", e)
	if err != nil {
		s.T.Fatal(err)
	}
	return jobs[0].Job
}

func (s *scenario) worker(name string) event.Worker {
	return event.Worker{Name: name, Boot: "01KDY9FY88BT0000000000" + strings.ToUpper((name + "0000")[:4]),
		Host: "build7", PID: 4242, Version: "v2"}
}

func (s *scenario) claim(name, queue string) projection.Job {
	s.T.Helper()
	jobs, err := s.Claim(s.T.Context(), commands.ClaimRequest{Queues: []string{queue}, Worker: s.worker(name),
		Version: "v2", Capabilities: []string{"gpu"}, Lease: time.Minute})
	if err != nil || len(jobs) != 1 {
		s.T.Fatalf("claim: %d jobs, %v", len(jobs), err)
	}
	return jobs[0]
}

// do is Service.Apply; a refusal is part of the scenario.
func (s *scenario) do(actor string, j projection.Job, c commands.Command) projection.Job {
	s.T.Helper()
	after, err := s.Apply(s.T.Context(), actor, j.ID, c)
	if err != nil && !strings.Contains(err.Error(), "refused") {
		s.T.Fatal(err)
	}
	return after
}

// turns are n jobs in the queue mail, one after the other, each of which takes so long: the first fails for
// good, the next succeeds, and so on. It returns the last one's id.
func (s *scenario) turns(n int, each time.Duration) (last event.JobID) {
	s.T.Helper()
	for i := range n {
		s.enqueue(commands.Enqueue{Queue: "mail", MaxAttempts: 1})
		j := s.claim("w1", "mail")
		s.wait(each)
		if last = j.ID; i%2 == 0 {
			s.do("worker:w1", j, commands.Fail{Token: j.Token, Code: "smtp"})
		} else {
			s.do("worker:w1", j, commands.Succeed{Token: j.Token})
		}
	}
	return last
}

// lost is a job that was claimed, lost, claimed again, and written to by its first owner.
func (s *scenario) lost() projection.Job {
	s.enqueue(commands.Enqueue{Queue: "mail", Key: "inv-1", Priority: 5,
		Tags:    map[string]string{"customer": "17"},
		Version: "v2", Requires: []string{"gpu"}, MaxRuntime: time.Hour, Payload: []byte("hello\x1b[2J"),
		RunAt: s.Now.Add(time.Second)})
	s.wait(1500 * time.Millisecond)
	first := s.claim("w1", "mail")
	s.wait(20 * time.Second)
	part := 0.4
	s.do("worker:w1", first, commands.Heartbeat{Token: first.Token, Lease: time.Minute, Progress: &part,
		Note: "half way"})
	s.wait(2 * time.Minute)
	none := time.Duration(0)
	sweeper := commands.Sweeper{Service: s.Service, Actor: "sweeper:build7", Grace: &none}
	if _, err := sweeper.Sweep(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
	s.wait(5 * time.Second)
	second := s.claim("w2", "mail")
	s.wait(250 * time.Millisecond)
	s.do("worker:w1", first, commands.Succeed{Token: first.Token, Result: []byte("late")})
	code := 3
	s.do("worker:w2", second, commands.Fail{Token: second.Token, Code: "smtp",
		Detail: "Traceback:\n  line 3\ngone \x1b[31m\n", ExitCode: &code, RetryIn: &none})
	s.wait(time.Hour)
	third := s.claim("w2", "mail")
	s.do("worker:w2", third, commands.Release{Token: third.Token, Reason: "deploy"})
	fourth := s.claim("w2", "mail")
	zero := 0
	return s.do("worker:w2", fourth, commands.Succeed{Token: fourth.Token, Result: []byte("sent\n"),
		ExitCode: &zero})
}

// cancelled is a job that another process takes over, and whose command ends after a cancel.
func (s *scenario) cancelled() {
	s.enqueue(commands.Enqueue{Queue: "video"})
	j := s.claim("w4", "video")
	next := s.worker("w4")
	next.Boot, next.PID = "01KDY9FY88TH0000000000BOOT", 4711
	taken := s.do("worker:w4", j, commands.TakeOver{Token: j.Token, Process: next, Lease: time.Minute})
	s.wait(time.Second)
	s.do("cli:ada@build7", taken, commands.Cancel{Reason: "too long"})
	s.wait(time.Second)
	s.do("worker:w4", taken, commands.ReportStop{Token: j.Token, Signal: "TERM"})
}

// rest adds everything else.
func (s *scenario) rest() {
	s.T.Helper()
	ctx := context.Background()
	check := func(err error) {
		s.T.Helper()
		if err != nil {
			s.T.Fatal(err)
		}
	}
	check(s.WorkerStarted(ctx, s.worker("w3"), []string{"web"}, []string{"gpu"}))
	bytes := s.enqueue(commands.Enqueue{Queue: "web", Payload: []byte{0xff, 0}})
	s.do("cli:ada@build7", bytes, commands.Reschedule{RunAt: &s.Now, Priority: new(int), Reason: "first"})
	later := s.Now.Add(48 * time.Hour)
	s.do("cli:ada@build7", bytes, commands.Reschedule{RunAt: &later, Reason: "weekend"})
	s.do("cli:ada@build7", bytes, commands.Cancel{Reason: "not needed"})
	s.do("cli:ada@build7", bytes, commands.Retry{Reason: "needed after all"})
	s.wait(time.Second)
	killed := s.claim("w3", "web")
	s.do("worker:w3", killed, commands.Fail{Token: killed.Token, Code: "signal", Signal: "KILL", NoRetry: true})
	s.enqueue(commands.Enqueue{Queue: "web", RunAt: s.Now.Add(time.Hour)})
	s.enqueue(commands.Enqueue{Queue: "web"})
	s.claim("w3", "web")
	_, err := s.Pause(ctx, "cli:ada@build7", "reports", "upstream is down")
	check(err)
	_, err = s.Resume(ctx, "cli:ada@build7", "reports", "")
	check(err)
	_, err = s.Pause(ctx, "cli:ada@build7", "reports", "down again")
	check(err)
	s.enqueue(commands.Enqueue{Queue: "reports"})
	check(s.WorkerStopped(ctx, s.worker("w3")))
	_, err = s.Rebuild(ctx, "cli:ada@build7")
	check(err)
}

// run returns the output of a command on this ledger, at its time, in a pipe, or on a terminal if width is
// not 0.
func (s *scenario) run(width int, typed ...string) (code int, stdout, stderr string) {
	s.T.Helper()
	var out, messages bytes.Buffer
	p := &program{&cli.Program{Stdout: bufio.NewWriter(&out), Stderr: &messages, StdoutTerminal: width > 0,
		Width: width,
		Now:   func() time.Time { return s.Now.In(time.FixedZone("", 2*3600)) }}}
	code = p.run(context.Background(), append([]string{"--db", s.Store.DSN()}, typed...)) // a line may have --
	return code, out.String(), messages.String()
}
