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
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
)

// Import returns a ledger with the bad night.
func Import(t testing.TB) *commandstest.Scenario {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	night := filepath.Join(filepath.Dir(here), "../../../../../testdata/history/bad-night.jsonl")
	text, err := os.ReadFile(night)
	if err != nil {
		t.Fatal(err)
	}
	s := commandstest.New(t)
	lines := files.Lines(io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))))
	if _, err := load.Import(t.Context(), s.Service, "cli:test", "bad-night.jsonl", lines, nil); err != nil {
		t.Fatal(err)
	}
	return s
}
