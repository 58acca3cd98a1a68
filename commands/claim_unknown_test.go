package commands

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// After a COMMIT with an unknown outcome, a claimer looks up its own tokens.
func TestClaimAfterUnknownCommitFindsItsJobs(t *testing.T) {
	var tokens []string
	s := &Service{Store: ledgertest.Open(t)}
	s.NewID = func() string {
		tokens = append(tokens, fmt.Sprintf("01KDXYZAF8%016d", len(tokens)+1))
		return tokens[len(tokens)-1]
	}
	if _, err := s.Enqueue(t.Context(), "cli:test", Enqueue{Queue: "q", Payload: []byte("a")},
		Enqueue{Queue: "q", Payload: []byte("b")}, Enqueue{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	w := event.Worker{Name: "w", Boot: "1"}
	r := ClaimRequest{Queues: []string{"q"}, Worker: w, Lease: time.Minute, Limit: 2}
	tokens = nil
	claimed, err := s.Claim(t.Context(), r)
	if err != nil || len(claimed) != 2 {
		t.Fatal(claimed, err)
	}
	asked := tokens
	other := r
	other.Worker.Boot = "2" // the same name, another process
	if _, err := s.Claim(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	mine, err := s.heldBy(t.Context(), w, asked)
	if err != nil || len(mine) != 2 {
		t.Fatalf("got %+v, %v, want both jobs", mine, err)
	}
	for i, j := range mine {
		if j.Token != asked[i] || string(j.Payload) != string(claimed[i].Payload) || len(j.Salt) == 0 ||
			!j.LeaseUntil.Equal(claimed[i].LeaseUntil) {
			t.Errorf("job %d: got %+v, want %+v", i, j, claimed[i])
		}
	}
	for name, look := range map[string]func() (int, error){
		"tokens of an unknown commit": func() (int, error) {
			mine,
				err := s.heldBy(t.Context(), w, []string{"x"})
			return len(mine), err
		},
		"another process": func() (int, error) {
			mine, err := s.heldBy(t.Context(), other.Worker,
				asked)
			return len(mine), err
		},
		"an unknown worker": func() (int, error) {
			mine, err := s.heldBy(t.Context(), event.Worker{Name: "x", Boot: "x"}, asked)
			return len(mine), err
		},
	} {
		if n, err := look(); n != 0 || err != nil {
			t.Errorf("%s: %d jobs, %v", name, n, err)
		}
	}
	if _, err := s.Apply(t.Context(), "worker:w", mine[0].ID, Succeed{Token: mine[0].Token}); err != nil {
		t.Errorf("finishing what was found: %v", err)
	}
}
