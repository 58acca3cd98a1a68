package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// self returns the locks that this process holds on the ledger at path, as the kernel reports them.
func self(t *testing.T, path string) (h ledger.LockHolder, holds bool) {
	t.Helper()
	for _, h := range ledger.LockHolders(path) {
		if h.PID == os.Getpid() {
			return h, true
		}
		t.Errorf("another process has it open: %+v", h)
	}
	return h, false
}

func TestLockHoldersOfOpenLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if _, holds := self(t, path); holds {
		t.Error("a ledger that does not exist has a lock holder")
	}
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if h, holds := self(t, path); !holds || h.Program == "" || h.Stopped || h.Reads || h.Writes || h.InQueue {
		t.Errorf("open: %+v, %t", h, holds)
	}
	read(t, s, func(tx *ledger.Tx) error {
		_, err := tx.Tail(t.Context())
		if h, _ := self(t, path); !h.Reads || h.Writes {
			t.Errorf("in a read: %+v", h)
		}
		return err
	})
	write(t, s, func(tx *ledger.Tx) error {
		if h, _ := self(t, path); !h.Writes {
			t.Errorf("in a write: %+v", h)
		}
		return nil
	})
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, holds := self(t, link); !holds {
		t.Error("it is not found open by another name")
	}
	ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "other.db"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if h, holds := self(t, path); holds {
		t.Errorf("closed: %+v", h)
	}
}

func TestLockHoldersParseProcLocks(t *testing.T) {
	for line, want := range map[string]bool{
		"1: POSIX  ADVISORY  READ 24700 fe:00:9986133 128 128": true,
		"6: FLOCK  ADVISORY  WRITE 931 00:1a:12 0 EOF":         true,
		"2: OFDLCK ADVISORY  READ -1 fe:00:9986078 1 2":        false, // belongs to no process
		"1: -> POSIX  ADVISORY  WRITE 5 fe:00:9 120 120":       false, // a process that waits
		"": false, "nonsense": false, "1: POSIX ADVISORY READ x fe:00:9 1 2": false,
		"1: POSIX ADVISORY READ 1 fe:00:9 x 2": false,
	} {
		if got := ledger.ReadsLock(line); got != want {
			t.Errorf("%q: got %t", line, got)
		}
	}
}
