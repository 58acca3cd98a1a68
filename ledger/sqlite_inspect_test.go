//go:build unix

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

// closed returns the path of a ledger with n events that no process has open.
func closed(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// looked returns the tail and the facts that an inspection of the ledger at path sees.
func looked(t *testing.T, look func(ctx context.Context, dsn string,
	fn func(*ledger.Tx, ledger.FileFacts) error) error, path string) (tail int64, facts ledger.FileFacts) {
	t.Helper()
	err := look(t.Context(), path, func(tx *ledger.Tx, f ledger.FileFacts) (err error) {
		facts = f
		tail, err = tx.Tail(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tail, facts
}

func TestInspectLeavesNoFiles(t *testing.T) {
	path := closed(t, 3)
	before := folder(t, filepath.Dir(path))
	tail, facts := looked(t, ledger.InspectFile, path)
	if tail != 3 || !facts.FileOnly || !facts.WALMode || facts.Schema != facts.Newest || facts.PageSize != 4096 {
		t.Errorf("got tail %d, %+v", tail, facts)
	}
	if after := folder(t, filepath.Dir(path)); !maps.Equal(before, after) {
		t.Errorf("a look changed the folder: %d files, %d before", len(after), len(before))
	}
	// A read-only connection of SQLite does change the folder.
	db := plain(t, path+"?mode=ro")
	mustExec(t, db, `SELECT count(*) FROM events`)
	if len(folder(t, filepath.Dir(path))) == len(before) {
		t.Error("the check above notices nothing")
	}
}

func TestInspectSeesWAL(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := openAt(t, ledgertest.New(t)) // whose tables are not in its file yet
	for range 3 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
	}
	if tail, facts := looked(t, ledger.InspectFile, s.Path()); tail != 3 || facts.FileOnly ||
		facts.Backlog == 0 {
		t.Errorf("got tail %d, %+v", tail, facts)
	}
	// The first transactions of a ledger, with its tables, are in the -wal file only.
	err := ledger.InspectFileOnly(t.Context(), s.Path(), func(tx *ledger.Tx, f ledger.FileFacts) error {
		_, err := tx.Tail(t.Context())
		return err
	})
	if err == nil {
		t.Error("the file alone has the events")
	}
	if whole, err := s.Checkpoint(t.Context()); !whole || err != nil {
		t.Fatal(whole, err)
	}
	if tail, facts := looked(t, ledger.InspectFileOnly, s.Path()); tail != 3 || !facts.FileOnly {
		t.Errorf("alone: got tail %d, %+v", tail, facts)
	}
	err = ledger.InspectFile(t.Context(), s.Path(), func(tx *ledger.Tx, _ ledger.FileFacts) error {
		return note(t.Context(), tx, "cli:looker")
	})
	if err == nil {
		t.Error("a look wrote")
	}
}

func TestInspectMigratesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	steps, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	db := plain(t, path)
	mustExec(t, db, fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID))
	mustExec(t, db, steps[0].SQL)
	mustExec(t, db, `PRAGMA user_version = 1`)
	_ = db.Close()
	before := folder(t, filepath.Dir(path))
	if _, facts := looked(t, ledger.InspectFile, path); facts.Schema != 1 || facts.Newest != len(steps) ||
		facts.WALMode {
		t.Errorf("got %+v", facts)
	}
	if after := folder(t, filepath.Dir(path)); !maps.Equal(before, after) {
		t.Error("a look changed the file")
	}
}

func TestInspectRequiresLedger(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "jobs.db")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{missing: ledger.ErrNoLedger, text: ledger.ErrNotALedger,
		filepath.Dir(text): ledger.ErrNotALedger} {
		err := ledger.InspectFile(t.Context(), path, func(*ledger.Tx, ledger.FileFacts) error { return nil })
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a look made a file")
	}
}

// A backup is copied over a ledger whose last process was killed: the killed process's -wal file is still
// there.
func TestInspectRefusesForeignWAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	backup := filepath.Join(t.TempDir(), "backup.db")
	s := ledgertest.OpenAt(t, path)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
	if _, err := s.Vacuum(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:later") })
	}
	// in another process: closing the file in this one would drop its locks
	run(t, "cp", path+"-wal", backup+".wal")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, "cp", backup, path)
	run(t, "cp", backup+".wal", path+"-wal")
	for what, err := range map[string]error{
		"Open": func() error { _, err := ledger.Open(t.Context(), path); return err }(),
		"Look": ledger.InspectFile(t.Context(), path, func(*ledger.Tx, ledger.FileFacts) error { return nil }),
		"Copy": ledger.CopyFile(t.Context(), path, backup+".copy"),
	} {
		if !errors.Is(err, ledger.ErrForeignSidecar) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if tail, _ := looked(t, ledger.InspectFileOnly, path); tail != 1 {
		t.Errorf("the file alone ends with %d", tail)
	}
	var events int
	if err := plain(t, path).QueryRow(`SELECT count(*) FROM events`).Scan(&events); err == nil && events == 1 {
		t.Error("SQLite does not take the -wal file for its own: nothing is to be refused")
	}
}

func run(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
}
