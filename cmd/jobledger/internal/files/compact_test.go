//go:build linux

package files_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"jobledger/cmd/jobledger/internal/files"
)

// The ledger of an older program cannot shrink, and has free pages.
func TestCompactShrinksOldLedger(t *testing.T) {
	t.Parallel()
	path, store := newLedger(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := verified(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	autoVacuum := func(want int) {
		t.Helper()
		var mode int
		if err := db.QueryRow(`PRAGMA auto_vacuum`).Scan(&mode); err != nil || mode != want {
			t.Errorf("auto_vacuum: got %d, want %d (%v)", mode, want, err)
		}
	}
	_, err = db.Exec(`PRAGMA auto_vacuum = NONE; VACUUM;
CREATE TABLE ballast AS SELECT randomblob(1000000) AS b; DROP TABLE ballast`)
	if err != nil {
		t.Fatal(err)
	}
	autoVacuum(0)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil { // #nosec G302 -- a group may read some ledgers
		t.Fatal(err)
	}

	done, err := files.Compact(t.Context(), path)
	if err != nil || done.Before < 1000000 || done.After > done.Before-900000 {
		t.Fatalf("got %+v, %v", done, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != done.After || info.Mode().Perm() != 0o640 {
		t.Errorf("the file: %v, %v", info, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*jobs.db*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder has %q, %v", left, err)
	}
	if got := verified(t, path); got != kinds {
		t.Errorf("got %s, want %s", got, kinds)
	}
	if db, err = sql.Open("sqlite", path); err != nil {
		t.Fatal(err)
	}
	autoVacuum(2)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := files.Compact(t.Context(), path)
	if err != nil || again.After > done.After {
		t.Errorf("again: got %+v, %v", again, err)
	}
}

func TestCompactRefusesOpenLedger(t *testing.T) {
	t.Parallel() // it waits for a moment
	path, store := newLedger(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = files.Compact(t.Context(), path)
	if _, ok := errors.AsType[*files.InUseError](err); !ok {
		t.Errorf("got %v", err)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("another file is there: %v", err)
	}
	enqueue(t, store, "three") // which goes on
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, path); got != "enqueued enqueued claimed succeeded enqueued" {
		t.Errorf("it holds %s", got)
	}
}
