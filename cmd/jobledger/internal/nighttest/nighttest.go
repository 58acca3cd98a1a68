// Package nighttest has the bad night of testdata for tests.
//
// For tests only: those of packages export, incident and web/view, and of the program.
package nighttest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
)

// Import returns a ledger with the bad night.
func Import(t testing.TB) *commandstest.Scenario {
	t.Helper()
	s := commandstest.New(t)
	ImportInto(t, s.Service)
	return s
}

// ImportInto imports the bad night into the ledger of s, which is empty, and returns how many events it has.
func ImportInto(t testing.TB, s *commands.Service) (events int64) {
	t.Helper()
	root, err := os.Getwd() // the folder of a package, somewhere in the module
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the folder of the test")
		}
		root = filepath.Dir(root)
	}
	text, err := os.ReadFile(filepath.Join(root, "testdata/history/bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := files.Lines(io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))))
	loaded, err := load.Import(t.Context(), s, "cli:test", "bad-night.jsonl", lines, nil)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Events
}
