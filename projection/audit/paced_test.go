package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// TestVerifyPaced finds what VerifyStore finds, takes at least four times as long as its steps, and ends
// while it rests when its context does.
func TestVerifyPaced(t *testing.T) {
	t.Parallel()
	store := ledgertest.Open(t)
	s := &commands.Service{Store: store}
	jobs := make([]commands.Enqueue, 300)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	if _, err := s.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	v, inSteps, err := audit.VerifyResting(t.Context(), store, 10*time.Microsecond)
	if err != nil || len(v.Findings) > 0 || v.Until != 300 {
		t.Fatalf("%+v %v", v, err)
	}
	if took := time.Since(began); took < 4*inSteps || inSteps == 0 {
		t.Errorf("it took %s, of which %s were steps", took, inSteps)
	}
	err = store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE jobs SET max_attempts = 77 WHERE n = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := audit.VerifyStore(t.Context(), store, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	paced, err := audit.VerifyPaced(t.Context(), store, 0, nil)
	if err != nil || len(paced.Findings) != 1 || paced.Findings[0] != whole.Findings[0] {
		t.Errorf("%+v %v, want %+v", paced.Findings, err, whole.Findings)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.VerifyPaced(ctx, store, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}
