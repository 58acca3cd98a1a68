package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// Every window of an intact ledger verifies, and a window reports damage of its own jobs only.
func TestVerifyWindow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, recorded(t), 0o600); err != nil {
		t.Fatal(err)
	}
	window := func(s *ledger.Store, since, until int64) (v audit.Verified) {
		t.Helper()
		err := s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			v, err = audit.VerifyWindow(t.Context(), tx, since, until, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var tail int64
	jobOf := make(map[int64]int64) // by event
	s := ledgertest.OpenAt(t, path)
	for line, err := range s.Lines(t.Context(), ledger.Filter{}, false) {
		if err != nil {
			t.Fatal(err)
		}
		tail, jobOf[line.Pos] = line.Pos, line.N
	}
	for since := int64(0); since < tail; since += 3 {
		for until := since + 1; until <= tail; until += 5 {
			v := window(s, since, until)
			if len(v.Findings) > 0 || v.Since != since || v.Until != until || v.Events != until-since {
				t.Fatalf("events %d to %d: %+v", since+1, until, v)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `UPDATE jobs SET max_attempts = max_attempts + 1 WHERE n = 1`)
	s = ledgertest.OpenAt(t, path)
	for since := range tail {
		for until := since + 1; until <= min(since+4, tail); until++ {
			want := false
			for pos := since + 1; pos <= until; pos++ {
				want = want || jobOf[pos] == 1
			}
			found := window(s, since, until).Findings
			if want != (len(found) == 1 && found[0].Code == audit.FindDiffers) || !want && len(found) > 0 {
				t.Fatalf("events %d to %d: %+v, of the altered job: %t", since+1, until, found, want)
			}
		}
	}
}
