package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// rawCopy returns an unchanged copy of the file of a ledger that no process has open. It is in WAL mode.
func rawCopy(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, content, 0o600))
}

// Another ledger's file replaces one that is in use, or whose last process was killed.
func TestSidecarOfExchangedLedgerIsNotMixed(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "other.db")
	s := ledgertest.OpenAt(t, other)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "other") })
	must(t, s.Close())
	rawCopy(t, other, other+".copy")

	ghost := ledgertest.OpenAt(t, path)
	if !ledger.IsTagged(path + "-wal") {
		t.Skip("the file system keeps no extended attributes of users")
	}
	for range 50 {
		write(t, ghost, func(tx *ledger.Tx) error { return note(t.Context(), tx, "old") })
	}
	ledgertest.OpenAt(t, path) // a further process may open the same ledger
	must(t, os.Rename(path, path+".old"))
	must(t, os.Rename(other, path))
	for _, open := range []func(context.Context, string) (*ledger.Store, error){ledger.Open,
		ledger.OpenExisting} {
		s, err := open(t.Context(), path)
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, ledger.ErrForeignSidecar) || !strings.Contains(err.Error(), path+"-wal") {
			t.Errorf("got %v, want ErrForeignSidecar and the file", err)
		}
	}
	now, err := os.ReadFile(path)
	must(t, err)
	before, err := os.ReadFile(other + ".copy")
	must(t, err)
	if !bytes.Equal(now, before) {
		t.Error("the file in its place was touched")
	}

	// After a restore, each ledger has its own events.
	for _, suffix := range []string{"-wal", "-shm"} {
		must(t, os.Rename(path+suffix, path+".old"+suffix))
	}
	wantActors(t, openAt(t, path), "other")
	must(t, ghost.Close())
	if got := len(actors(t, openAt(t, path+".old"))); got != 50 {
		t.Errorf("the old one has %d events, want 50", got)
	}
}
