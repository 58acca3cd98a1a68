package view

import (
	"context"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/cron"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// TestVerifierDaily runs a verifier shortly before its time of the day. What was altered after the check of
// the start, in a row that no event concerns since, is found at that time and not before.
func TestVerifierDaily(t *testing.T) {
	t.Parallel()
	store := ledgertest.Open(t)
	s := &commands.Service{Store: store}
	if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	three, err := cron.Parse("0 3 * * *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 15, 3, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	now := at.Add(-20 * time.Millisecond) // until the row is altered
	v := NewVerifier(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}, three)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { v.Run(ctx, store) })
	defer running.Wait()
	defer stop()
	until := func(what string, holds func(Verification) bool) Verification {
		t.Helper()
		for range 2000 {
			if last := v.Last(); holds(last) {
				return last
			}
			time.Sleep(5 * time.Millisecond) // no event says that a check has ended
		}
		t.Fatalf("never %s: %+v", what, v.Last())
		return Verification{}
	}
	first := until("verified at the start", func(v Verification) bool { return !v.WholeAt.IsZero() })
	if len(first.Findings) > 0 || !first.Next.Equal(at) {
		t.Fatalf("at the start: %+v", first)
	}
	err = store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE jobs SET max_attempts = 77 WHERE n = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v.check(t.Context(), store, onlyNew)
	if last := v.Last(); len(last.Findings) > 0 {
		t.Fatalf("before its time: %+v", last)
	}
	mu.Lock()
	now = at
	mu.Unlock()
	last := until("verified at 03:00", func(v Verification) bool { return v.WholeAt.Equal(at) })
	if len(last.Findings) != 1 || last.Findings[0].Code != audit.FindDiffers || last.WholeTook <= 0 ||
		!last.Next.Equal(at.AddDate(0, 0, 1)) {
		t.Errorf("at 03:00: %+v", last)
	}
}
