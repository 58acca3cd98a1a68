//go:build unix

package ledger_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A ledger with a second name is only read at both. Each would have a -wal file of its own.
func TestOpenWithSecondNameOnlyReads(t *testing.T) {
	ledgertest.OfSQLite(t)
	dir := t.TempDir()
	path, second := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "elsewhere", "jobs.db")
	must(t, os.Mkdir(filepath.Dir(second), 0o700))
	s, err := ledger.Open(t.Context(), path)
	must(t, err)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	must(t, s.Close())
	must(t, os.Link(path, second))
	before := folder(t, dir)
	link := filepath.Join(dir, "link.db")
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, ledger.ErrSecondName) || !strings.Contains(err.Error(), "2 names") ||
			!strings.Contains(err.Error(), "?names=allow") {
			t.Errorf("got %v, want ErrSecondName", err)
		}
	}
	reads := func(path string) {
		t.Helper()
		s, err := ledger.Open(t.Context(), path)
		must(t, err)
		wantActors(t, s, "a")
		refused(s.ReadOnly())
		refused(s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "x") }))
		_, err = s.Checkpoint(t.Context())
		refused(err)
		if s.ReadNote() == "" || s.Path() != path {
			t.Errorf("of %s it says %q", s.Path(), s.ReadNote())
		}
		must(t, s.Close())
	}
	for _, path := range []string{path, second} {
		reads(path)
		_, err := ledger.LockExclusive(t.Context(), path, false)
		refused(err)
	}
	if after := folder(t, dir); !maps.Equal(after, before) {
		t.Errorf("files were made: %v", after)
	}
	must(t, os.Symlink(path, link))
	reads(link)
	allowed, err := ledger.Open(t.Context(), "sqlite:"+path+"?names=allow")
	must(t, err)
	wantActors(t, allowed, "a")
	must(t, allowed.Close())
	must(t, os.Remove(second))
	s = openAt(t, path)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	sound(t, s)
}

// A copy that was published, and a restore that was about to replace the ledger, leave a second name where
// they are killed. No process works with it, so the ledger can be used by its own name, and by no other.
func TestOpenWithNamesOfInterruptedCopies(t *testing.T) {
	ledgertest.OfSQLite(t)
	for _, left := range []string{".jobs.db.123456", "jobs.db.before-20260102T030405Z"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "jobs.db")
		s, err := ledger.Open(t.Context(), path)
		must(t, err)
		must(t, s.Close())
		must(t, os.Link(path, filepath.Join(dir, left)))
		if s := openAt(t, filepath.Join(dir, left)); !errors.Is(s.ReadOnly(), ledger.ErrSecondName) {
			t.Errorf("%s: got %v, want ErrSecondName", left, s.ReadOnly())
		}
		s = openAt(t, path)
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
		sound(t, s)
		must(t, os.Link(path, filepath.Join(dir, "other.db")))
		if n := ledger.NamesOf(path); n.Links != 2 || n.Mounted {
			t.Errorf("got %+v, want 2 links", n)
		}
	}
}
