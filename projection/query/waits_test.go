package query_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/query"
)

// A job waits from the moment at which it is ready to its claim: not from when another one ended on which it
// depends, if its time comes later; and another priority, another payload or a time that has come already
// does not begin the wait again.
func TestWaitsAreOfReadyJobs(t *testing.T) {
	begin, five := ledgertest.Epoch, 5
	three, eight := begin.Add(3*time.Second), begin.Add(8*time.Second)
	keyed := commands.Enqueue{Queue: "mail", Key: "k", UniqueWhile: event.WhileQueued}
	reschedule := func(c commands.Reschedule) func(*commandstest.Scenario, event.JobID) error {
		return func(s *commandstest.Scenario, id event.JobID) error {
			_, err := s.Reschedule(t.Context(), "cli:ada", id, c)
			return err
		}
	}
	for name, tt := range map[string]struct {
		job    commands.Enqueue
		before func(s *commandstest.Scenario, id event.JobID) error // 3 s after it was enqueued
		claim  time.Duration                                        // after it was enqueued
		want   time.Duration
	}{
		"at once": {claim: 7 * time.Second, want: 7 * time.Second},
		"priority": {claim: 7 * time.Second, want: 7 * time.Second,
			before: reschedule(commands.Reschedule{Priority: &five})},
		"now again": {claim: 7 * time.Second, want: 7 * time.Second,
			before: reschedule(commands.Reschedule{RunAt: &three})},
		"postponed": {claim: 9 * time.Second, want: time.Second,
			before: reschedule(commands.Reschedule{RunAt: &eight})},
		"payload": {job: keyed, claim: 7 * time.Second, want: 7 * time.Second,
			before: func(s *commandstest.Scenario, _ event.JobID) error {
				another := keyed
				another.Payload, another.OnDuplicate = []byte("new"), commands.ReplaceDuplicate
				_, err := s.Enqueue(t.Context(), "cli:test", another)
				return err
			}},
		"cancelled and retried": {job: commands.Enqueue{Queue: "mail", RunAt: begin.Add(time.Minute)},
			claim: 7 * time.Second, want: 4 * time.Second,
			before: func(s *commandstest.Scenario, id event.JobID) error {
				if _, err := s.Cancel(t.Context(), "cli:ada", id, ""); err != nil {
					return err
				}
				_, err := s.Retry(t.Context(), "cli:ada", id, commands.Retry{Now: true})
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := commandstest.New(t)
			tt.job.Queue = "mail"
			made, err := s.Enqueue(t.Context(), "cli:test", tt.job)
			if err != nil {
				t.Fatal(err)
			}
			if s.Now = begin.Add(3 * time.Second); tt.before != nil {
				if err := tt.before(s, made[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			s.Now = begin.Add(tt.claim)
			checkWait(t, s, tt.want)
		})
	}
}

// A job that depends on another one waits from its own time on, where that comes after the end of the other.
func TestWaitsOfDependentJobs(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{0: 4 * time.Second, 6 * time.Second: time.Second} {
		s := commandstest.New(t)
		ctx, begin := t.Context(), s.Now
		first, err := s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "first"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", RunAt: begin.Add(delay),
			After: []commands.Dependency{{Job: first[0].ID}}})
		if err != nil {
			t.Fatal(err)
		}
		worker := event.Worker{Name: "w", Boot: "boot-1"}
		held, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"first"}, Worker: worker, Limit: 1})
		if err != nil || len(held) != 1 {
			t.Fatal(held, err)
		}
		s.Now = begin.Add(3 * time.Second)
		if _, err := s.Complete(ctx, held[0], nil); err != nil {
			t.Fatal(err)
		}
		s.Now = begin.Add(7 * time.Second)
		checkWait(t, s, want)
	}
}

// checkWait claims the job of mail, and compares how long it waited, read from the beginning and from the
// event before its claim on.
func checkWait(t *testing.T, s *commandstest.Scenario, want time.Duration) {
	t.Helper()
	held, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: 1,
		Worker: event.Worker{Name: "w", Boot: "boot-1"}})
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		for _, from := range []int64{0, tail - 1} {
			span := query.Span{Queue: "mail"}
			if span.From, err = projection.AtPos(t.Context(), tx, from); err != nil {
				return err
			}
			if span.To, err = projection.AtPos(t.Context(), tx, tail); err != nil {
				return err
			}
			got, err := query.Waits{Span: span}.Read(t.Context(), tx)
			if err != nil {
				return err
			}
			one := query.Wait{Queue: "mail", Claims: 1, P50: want, P90: want, P99: want, Max: want}
			if len(got) != 1 || got[0] != one {
				t.Errorf("from %d: %+v, want one claim after %s", from, got, want)
			}
			course, err := query.Series{Span: span}.Read(t.Context(), tx)
			if err != nil {
				return err
			}
			if i := len(course.WaitP50) - 1; course.WaitP50[i] != want.Seconds() {
				t.Errorf("from %d: the series has %v, want %s", from, course.WaitP50, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
