package commands_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

const (
	tokenA = "01KDXYZAF8000000000000000A"
	tokenB = "01KDXYZAF8000000000000000B"
	tokenC = "01KDXYZAF8000000000000000C"
)

// A claimer that made the tokens itself gets the same claims again, also with the ends of other jobs in the
// same request.
func TestClaimWithOwnTokensIsSafeToRepeat(t *testing.T) {
	s := &commands.Service{Store: ledgertest.Open(t)}
	for _, payload := range []string{"a", "b", "c"} {
		e := commands.Enqueue{Queue: "q", Payload: []byte(payload)}
		if _, err := s.Enqueue(t.Context(), "cli:test", e); err != nil {
			t.Fatal(err)
		}
	}
	w := event.Worker{Name: "w", Boot: "1"}
	first, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"q"}, Worker: w})
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	r := commands.ClaimRequest{Queues: []string{"q"}, Worker: w, Tokens: []string{tokenA, tokenB, tokenC}}
	succeed := commands.Succeed{Token: first[0].Token, Result: []byte("done")}
	ends := []commands.Op{{Job: first[0], Command: succeed}}
	turn := func() (projection.Job, []projection.Job) {
		t.Helper()
		results, jobs, err := s.ApplyAndClaim(t.Context(), "worker:w", ends, r)
		if err != nil || len(results) != 1 || results[0].Err != nil {
			t.Fatal(results, err)
		}
		return results[0].Job, jobs
	}
	done, jobs := turn()
	if done.State != event.SucceededState || len(jobs) != 2 || jobs[0].Token != tokenA ||
		jobs[1].Token != tokenB {
		t.Fatalf("got %v and %d jobs", done.State, len(jobs))
	}
	tail := func() (pos int64) {
		t.Helper()
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			pos = tailOf(t, tx)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return pos
	}
	before := tail()
	again, same := turn()
	if again.Seq != done.Seq || len(same) != 2 || same[0].ID != jobs[0].ID || same[1].ID != jobs[1].ID ||
		string(same[0].Payload) != "b" || tail() != before {
		t.Errorf("sent again: %+v, %d events", same, tail()-before)
	}
	other := r
	other.Worker.Boot = "2" // the tokens of another process
	if got, err := s.Claim(t.Context(), other); err != nil || len(got) != 0 {
		t.Errorf("another process got %v, %v", got, err)
	}
	held, err := s.Held(t.Context(), "1")
	if err != nil || len(held) != 2 || string(held[1].Payload) != "c" || held[1].Token != tokenB {
		t.Errorf("held: %+v, %v", held, err)
	}
	beat, err := s.Beat(t.Context(), "worker:w", "1", []commands.Op{
		{Job: jobs[1], Command: commands.Heartbeat{Token: tokenB, Lease: time.Minute}},
		{Job: first[0], Command: commands.Heartbeat{Token: first[0].Token, Lease: time.Minute}}})
	if err != nil || beat.Results[0].Err != nil || !errors.Is(beat.Results[1].Err, commands.ErrConflict) ||
		len(beat.Unknown) != 1 || beat.Unknown[0].Token != tokenA {
		t.Errorf("beat: %+v, %v", beat, err)
	}
	if _, err := s.Apply(t.Context(), "worker:w", jobs[0].ID, commands.Release{Token: tokenA}); err != nil {
		t.Fatal(err)
	}
	one := r
	one.Tokens = []string{tokenA}
	if got, err := s.Claim(t.Context(), one); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("the same token for the same job: %v, %v", got, err)
	}
	one.Tokens = []string{tokenC}
	if got, err := s.Claim(t.Context(), one); err != nil || len(got) != 1 || got[0].Attempt != 2 {
		t.Errorf("another token: %v, %v", got, err)
	}
	commandstest.Verify(t, s.Store)
}

func TestClaimRefusesBadTokens(t *testing.T) {
	s := &commands.Service{Store: ledgertest.Open(t)}
	for name, tokens := range map[string][]string{"none": {}, "no ULID": {"x"}, "empty": {""},
		"small letters": {"01kdxyzaf8000000000000000a"}, "twice": {tokenA, tokenA}} {
		r := commands.ClaimRequest{Queues: []string{"q"}, Worker: event.Worker{Name: "w", Boot: "1"},
			Tokens: tokens}
		if _, err := s.Claim(t.Context(), r); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := commands.ClaimRequest{Queues: []string{"q"}, Worker: event.Worker{Name: "w", Boot: "1"}, Limit: 2,
		Tokens: []string{tokenA}}
	if _, err := s.Claim(t.Context(), r); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("another limit: %v", err)
	}
	r.Limit = 0
	if _, _, err := s.ApplyAndClaim(t.Context(), "worker:w", []commands.Op{{Job: projection.Job{ID: "x"},
		Command: commands.Release{Token: tokenA}}}, r); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("the token of an op: %v", err)
	}
}
