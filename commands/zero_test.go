package commands_test

import (
	"errors"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Zero values say what is missing.
func TestServiceWithoutStore(t *testing.T) {
	ctx := t.Context()
	for name, want := range map[string]error{"no store": commands.ErrNoStore, "a zero store": ledger.ErrClosed} {
		s := &commands.Service{}
		if want == ledger.ErrClosed {
			s.Store = &ledger.Store{}
		}
		_, enqueueErr := s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail"})
		_, getErr := s.Get(ctx, event.JobID(id(1)))
		_, claimErr := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w")})
		_, cancelErr := s.Cancel(ctx, "cli:test", event.JobID(id(1)), "")
		_, batchErr := s.ApplyBatch(ctx, "cli:test", nil)
		sweeper := commands.Sweeper{Service: s, Actor: "sweeper:test"}
		_, sweepErr := sweeper.Sweep(ctx)
		for what, err := range map[string]error{
			"Enqueue": enqueueErr, "Get": getErr, "Claim": claimErr, "Cancel": cancelErr, "ApplyBatch": batchErr,
			"Sweep": sweepErr,
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s, %s: got %v, want %v", name, what, err, want)
			}
		}
	}
}
