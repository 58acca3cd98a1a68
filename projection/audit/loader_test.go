package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
)

// TestLoaderBoundsMemory: jobs beyond the bound are written out and read again, with the same result.
func TestLoaderBoundsMemory(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(historytest.Dir(t), "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 1, 7} {
		audit.LimitLoading(t, limit)
		s := ledgertest.Open(t)
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			l := audit.NewLoader(tx)
			for text := range bytes.Lines(text) {
				var line event.Line
				if err := line.UnmarshalJSON(text); err != nil {
					return err
				}
				if err := l.Add(t.Context(), line); err != nil {
					return err
				}
			}
			return l.End(t.Context())
		})
		if err != nil {
			t.Fatalf("limit %d: %v", limit, err)
		}
		wantClean(t, s)
	}
}
