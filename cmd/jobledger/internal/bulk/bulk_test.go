package bulk

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

var reason = commands.Cancel{Reason: "sent twice"}

// site is a ledger with queued jobs, which is verified at the end.
func site(t *testing.T, jobs int) *commands.Service {
	t.Helper()
	s := &commands.Service{Store: ledgertest.Open(t)}
	enqueue(t, s, jobs)
	t.Cleanup(func() {
		err := s.Store.Read(context.Background(), func(tx *ledger.Tx) error {
			v, err := audit.Verify(context.Background(), tx, nil)
			for _, f := range v.Findings {
				t.Errorf("verify: %+v", f)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	return s
}

func enqueue(t *testing.T, s *commands.Service, jobs int) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), "cli:ada", slices.Repeat([]commands.Enqueue{{Queue: "mail"}},
		jobs)...); err != nil {
		t.Fatal(err)
	}
}

func cancelAll(s *commands.Service) *Act {
	return &Act{Service: s, Actor: "cli:ada", Filter: projection.Filter{States: []event.State{event.Queued}},
		Command: func(projection.Job) commands.Command { return reason }}
}

// count returns how many events of the kind there are.
func count(t *testing.T, s *commands.Service, kind event.Kind) (n int) {
	t.Helper()
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for _, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{kind}}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRunContinues cuts an act off after its first chunk. The same act does the rest, and no job twice.
func TestRunContinues(t *testing.T) {
	const jobs = 2*chunk + 7
	s := site(t, jobs)
	cut := errors.New("cut off")
	tally, err := cancelAll(s).Run(t.Context(), func(_, _ projection.Job) error { return cut })
	if !errors.Is(err, cut) || tally.Done != 1 {
		t.Fatalf("%+v, %v", tally, err)
	}
	if got := count(t, s, event.KindCancelled); got != chunk {
		t.Fatalf("%d jobs are cancelled, want one chunk of %d", got, chunk)
	}
	a := cancelAll(s)
	if n, err := a.Count(t.Context()); n != jobs-chunk || err != nil {
		t.Errorf("%d are left, %v; want %d", n, err, jobs-chunk)
	}
	if tally, err = a.Run(t.Context(), nil); tally != (Tally{Done: jobs - chunk}) || err != nil {
		t.Errorf("the rest: %+v, %v", tally, err)
	}
	if got := count(t, s, event.KindCancelled); got != jobs {
		t.Errorf("%d events, want %d", got, jobs)
	}
}

func TestRunPassesJobsThatChanged(t *testing.T) {
	s := site(t, 3)
	a := cancelAll(s)
	a.Filter.States = []event.State{event.FailedState, event.CancelledState}
	a.Command = func(projection.Job) commands.Command { return commands.Retry{NotSucceeded: true} }
	if _, err := cancelAll(s).Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	first := true
	a.Command = func(j projection.Job) commands.Command {
		if first { // another operator is faster
			if _, err := s.Apply(t.Context(), "cli:bob", j.ID, commands.Retry{}); err != nil {
				t.Error(err)
			}
		}
		first = false
		return commands.Retry{NotSucceeded: true}
	}
	if tally, err := a.Run(t.Context(), nil); tally != (Tally{Done: 2, Passed: 1}) || err != nil {
		t.Errorf("%+v, %v", tally, err)
	}
}

func TestCountLeavesOutLaterJobs(t *testing.T) {
	s := site(t, 2)
	a := cancelAll(s)
	if n, err := a.Count(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	enqueue(t, s, 1)
	if tally, err := a.Run(t.Context(), nil); tally != (Tally{Done: 2}) || err != nil {
		t.Errorf("%+v, %v", tally, err)
	}
}

// TestRetryDelay: a job that is retried with a delay waits for that, and for its last command if that may run
// for longer. The end of the command does not cut the delay short.
func TestRetryDelay(t *testing.T) {
	s := site(t, 1)
	held, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: 1, Lease: time.Hour,
		Worker: event.Worker{Name: "w", Boot: "b"}})
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	apply := func(c commands.Command) projection.Job {
		t.Helper()
		j, err := s.Apply(t.Context(), "cli:ada", held[0].ID, c)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	if _, err := s.Apply(t.Context(), "worker:w", held[0].ID,
		commands.Heartbeat{Token: held[0].Token, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	apply(reason)
	if j := apply(commands.Retry{Delay: time.Minute}); time.Until(j.RunAt) < 50*time.Minute {
		t.Errorf("it runs at %v, before its last command has ended", j.RunAt)
	}
	apply(reason)
	delayed := apply(commands.Retry{Delay: 5 * time.Hour})
	if wait := time.Until(delayed.RunAt); wait < 4*time.Hour || wait > 5*time.Hour {
		t.Errorf("it waits %v, want 5h", wait)
	}
	if j := apply(commands.ReportStop{Token: held[0].Token}); !j.RunAt.Equal(delayed.RunAt) {
		t.Errorf("after the command's end it runs at %v, want %v", j.RunAt, delayed.RunAt)
	}
	if _, err := s.Apply(t.Context(), "cli:ada", held[0].ID, commands.Retry{Delay: -1}); !errors.Is(err,
		commands.ErrInvalid) {
		t.Errorf("a negative delay: %v", err)
	}
}

func TestSpreadIsEven(t *testing.T) {
	const jobs, tenths = 10_000, 10
	var in [tenths]int
	for n := range jobs {
		id := event.JobID("01JB2Q" + strconv.Itoa(n))
		d := Spread(id, time.Hour)
		if d < 0 || d >= time.Hour || d != Spread(id, time.Hour) {
			t.Fatalf("%s: %v", id, d)
		}
		in[d*tenths/time.Hour]++
	}
	for i, n := range in {
		if n < jobs/tenths*8/10 || n > jobs/tenths*12/10 {
			t.Errorf("tenth %d has %d of %d jobs", i, n, jobs)
		}
	}
	if d := Spread("01JB2Q", 0); d != 0 {
		t.Errorf("without a spread: %v", d)
	}
}
