package audit_test

import (
	"bytes"
	"math/rand/v2"
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

// A Loader that goes on from what another one saved leaves the rows that the events make, wherever it stops.
func TestLoaderGoesOnAfterAnother(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(historytest.Dir(t), "*.jsonl"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range ledgertest.Sample(files, 3) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		lines = lines[:len(lines)-1]
		random := rand.New(rand.NewPCG(1, 7))
		s := ledgertest.Open(t)
		for rest := lines; len(rest) > 0; {
			most := max(2, len(lines)/10)
			if len(lines) > 1000 {
				most = len(lines)
			}
			n := min(len(rest), 1+random.IntN(most))
			err := s.Write(t.Context(), func(tx *ledger.Tx) error {
				l, err := audit.Resume(t.Context(), tx)
				for _, text := range rest[:n] {
					var line event.Line
					if err == nil {
						err = line.UnmarshalJSON(text)
					}
					if err == nil {
						err = l.Add(t.Context(), line)
					}
				}
				if err == nil {
					err = l.End(t.Context())
				}
				if err == nil {
					err = l.Save()
				}
				return err
			})
			if err != nil {
				t.Fatalf("%s, %d lines from the end: %v", file, len(rest), err)
			}
			rest = rest[n:]
			for _, f := range verify(t, s).Findings {
				// It is an export without payloads, and its last line says that what had left is there again.
				if f.Code != audit.FindBody && (f.Code != audit.FindRemoved || len(rest) == 0) {
					t.Errorf("%s, %d lines from the end: %+v", file, len(rest), f)
				}
			}
		}
	}
}
