//go:build unix

package ledger_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A ledger is removed while a process uses it. SQLite alone would let the next ledger at that path share the
// old -shm file, and would lose what it acknowledges.
func TestSidecarPreventsNewLedgerAfterRemoval(t *testing.T) {
	for name, left := range map[string][]string{"both files": {"-wal", "-shm"}, "the -shm file": {"-shm"},
		"the -wal file": {"-wal"}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			ghost := ledgertest.OpenAt(t, path)
			write(t, ghost, func(tx *ledger.Tx) error { return note(t.Context(), tx, "old") })
			must(t, os.Remove(path))
			for _, suffix := range []string{"-wal", "-shm"} {
				if suffix != left[0] && len(left) == 1 {
					must(t, os.Remove(path+suffix))
				}
			}
			for range 2 {
				s, err := ledger.Open(t.Context(), path)
				if err == nil {
					_ = s.Close()
				}
				if !errors.Is(err, ledger.ErrForeignSidecar) || !strings.Contains(err.Error(), path+left[0]) {
					t.Fatalf("got %v, want ErrForeignSidecar and the file", err)
				}
				if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a file was made: %v", err)
				}
			}
			if _, err := ledger.OpenExisting(t.Context(), path); !errors.Is(err, ledger.ErrNoLedger) {
				t.Errorf("a ledger that must be there: got %v, want ErrNoLedger", err)
			}
			for _, suffix := range left {
				must(t, os.Remove(path+suffix))
			}
			s := openAt(t, path)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "new") })
			must(t, ghost.Close())
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "newer") })
			wantActors(t, s, "new", "newer")
			wantActors(t, openAt(t, path), "new", "newer")
		})
	}
}

// A commit is acknowledged only if the file is still at its path afterwards: it may have been exchanged
// meanwhile.
func TestCommitIntoExchangedFileIsUnknown(t *testing.T) {
	for name, exchange := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			s := ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "jobs.db"))
			err := s.Write(t.Context(), func(tx *ledger.Tx) error {
				return errors.Join(note(t.Context(), tx, "a"), exchange(s.Path()))
			})
			if !errors.Is(err, ledger.ErrUnknown) || !errors.Is(err, ledger.ErrReplaced) {
				t.Errorf("got %v, want ErrUnknown and ErrReplaced", err)
			}
			if name == "moved" {
				must(t, os.Rename(s.Path()+".old", s.Path()))
				wantActors(t, s, "a") // it was committed, although its outcome was reported as unknown
				write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
				sound(t, s)
			}
		})
	}
}

// A copy of all three files is a valid ledger, wherever it is and however it was made.
func TestSidecarOfCopiedFilesIsAccepted(t *testing.T) {
	dir := t.TempDir()
	s := ledgertest.OpenAt(t, filepath.Join(dir, "jobs.db"))
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	for _, flags := range []string{"-r", "-a"} {
		to := filepath.Join(t.TempDir(), "copy")
		// in another process, because this one has the ledger open
		if out, err := exec.Command("cp", flags, dir, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		wantActors(t, openAt(t, filepath.Join(to, "jobs.db")), "a")
	}
	must(t, os.Rename(dir, dir+".moved"))
	moved := ledgertest.OpenAt(t, filepath.Join(dir+".moved", "jobs.db"))
	wantActors(t, moved, "a")
	must(t, moved.Close())
	must(t, os.Rename(dir+".moved", dir))
	wantActors(t, s, "a")
}

func TestSidecarModeFollowsLedger(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	must(t, os.Chmod(s.Path()+"-shm", 0o400)) // as SQLite creates it for a read-only ledger
	must(t, os.Chmod(s.Path()+"-wal", 0o400))
	openAt(t, s.Path())
	for _, suffix := range []string{"-wal", "-shm"} {
		if info, err := os.Stat(s.Path() + suffix); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", suffix, info.Mode(), err)
		}
	}
}
