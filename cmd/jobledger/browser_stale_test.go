package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// A page that follows the ledger says within 5 s that it is not true any more: where the server was killed,
// stopped or ended, and where the session has ended. Ages are renewed on every page, or are not there.
func TestStaleSign(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	browser := chromium(t)
	program := filepath.Join(t.TempDir(), "jobledger")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s := commandstest.New(t)
	if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(map[string]string{"program": program, "ledger": s.Store.Path(), "browser": browser})
	check(t, err)
	look := exec.CommandContext(t.Context(), "node", "stale.mjs")
	look.Dir, look.Stdin = browserFolder, bytes.NewReader(in)
	look.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	look.Stderr = &stderr
	out, err := look.Output()
	if err != nil {
		t.Fatalf("stale.mjs: %v\n%s", err, stderr.String())
	}
	var answer struct {
		Findings []string
		Seconds  map[string][]float64
	}
	check(t, json.Unmarshal(out, &answer))
	for _, f := range answer.Findings {
		t.Error(f)
	}
	t.Logf("seconds until the sign: %v", answer.Seconds)
}
