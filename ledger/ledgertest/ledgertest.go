// Package ledgertest opens ledgers for tests, on every engine that there is.
package ledgertest

import (
	"path/filepath"
	"testing"
	"time"

	"jobledger/ledger"
)

// Open returns a new, empty ledger in a temporary folder. It is closed when the test ends.
func Open(t testing.TB) *ledger.Store {
	t.Helper()
	return OpenAt(t, filepath.Join(t.TempDir(), "jobs.db"))
}

// OpenAt opens the ledger at path, as one more process would. It is closed when the test ends.
func OpenAt(t testing.TB, path string) *ledger.Store {
	t.Helper()
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	// In a synctest bubble, where it is the year 2000, a goroutine that waits for the system would stop the clock.
	s.Alone = time.Now().Year() < 2020
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", path, err)
		}
	})
	return s
}

// Epoch is where a Clock starts: 2026-01-02 03:04:05 UTC.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
