// Package nighttest has the bad night of testdata for tests.
package nighttest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
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
	_, here, _, _ := runtime.Caller(0)
	night := filepath.Join(filepath.Dir(here), "../../../../testdata/history/bad-night.jsonl")
	text, err := os.ReadFile(night)
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
