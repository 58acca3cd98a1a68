package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
)

// TestNewLedgersHaveKeyframes: what import, restore and rebuild leave has the keyframes that a sweeper would
// add, so that questions about a moment read few events from the first command on.
func TestNewLedgersHaveKeyframes(t *testing.T) {
	ledgertest.OfSQLite(t)
	dir := t.TempDir()
	made, backup := filepath.Join(dir, "made.db"), filepath.Join(dir, "backup.db")
	lines := filepath.Join(dir, "lines.jsonl")
	store := ledgertest.OpenAt(t, made)
	service := &commands.Service{Store: store}
	jobs := make([]commands.Enqueue, keyframe.Every+1)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	_, err := service.Enqueue(t.Context(), "cli:test", jobs...)
	check(t, err)
	check(t, store.Close())
	run := func(path string, typed ...string) (stdout string) {
		t.Helper()
		code, stdout := runAt(path, time.Now(), typed...)
		if code != 0 {
			t.Fatalf("%q ends with %d: %s", typed, code, stdout)
		}
		return stdout
	}
	run(made, "backup", backup)
	check(t, os.WriteFile(lines, []byte(run(made, "export")), 0o600))
	restored, imported := filepath.Join(dir, "restored.db"), filepath.Join(dir, "imported.db")
	run(restored, "restore", backup)
	run(imported, "import", lines)
	run(made, "rebuild")
	for _, path := range []string{restored, imported, made} {
		store := ledgertest.OpenAt(t, path)
		check(t, store.Read(t.Context(), func(tx *ledger.Tx) error {
			k, found, err := keyframe.Next(t.Context(), tx, 0)
			if err == nil && (!found || k.Pos < keyframe.Every) {
				t.Errorf("%s has no keyframe", filepath.Base(path))
			}
			return err
		}))
		if v, err := audit.VerifyStore(t.Context(), store, 0, nil); err != nil || len(v.Findings) > 0 {
			t.Errorf("%s: %v, %v", filepath.Base(path), v.Findings, err)
		}
	}
}
