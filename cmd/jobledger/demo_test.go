package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/demo"
	"jobledger/ledger"
)

// A complete demo needs the program itself, which the script demo.txtar runs.

func TestRunRefusesAnEmptyFolderAndAnEarlierLedger(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "demo.db")
	o := demo.Options{DB: db, ShownDB: db, Folder: t.TempDir(), Out: io.Discard, Actor: "cli:test"}
	if _, err := demo.Run(t.Context(), o); !errors.Is(err, demo.ErrNoFiles) {
		t.Errorf("an empty folder: %v, want ErrNoFiles", err)
	}
	if _, err := os.Stat(db); err == nil {
		t.Error("an empty folder: there is a ledger")
	}
	store, err := ledger.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Run(t.Context(), o); !errors.Is(err, demo.ErrExists) {
		t.Errorf("an earlier ledger: %v, want ErrExists", err)
	}
	o.Force = true
	if _, err := demo.Run(t.Context(), o); !errors.Is(err, demo.ErrNoFiles) {
		t.Errorf("an earlier ledger, with Force: %v, want ErrNoFiles", err)
	}
	if _, err := os.Stat(db); err == nil {
		t.Error("Force has not removed the earlier ledger")
	}
}

func TestSumPrintsWhatSha256sumPrints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := demo.Sum(strings.NewReader(path), &out); err != nil {
		t.Fatal(err)
	}
	if want := "b6a98d9ce9a2d9149288fa3df42d377c3e42737afdcdaf714e33c0a100b51060  -\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
