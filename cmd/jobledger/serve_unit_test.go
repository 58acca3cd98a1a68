//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// The unit for systemd in the docs is valid, and what it starts serves.
func TestServeUnitInTheDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s := newSite(t)
	_, unit, found := strings.Cut(readPage(t, "docs/http.md"), "\n    [Service]\n")
	unit, _, whole := strings.Cut("    [Service]\n"+unit, "\n\n## ")
	program, err := exec.LookPath("jobledger")
	s.ok(err)
	unit = strings.ReplaceAll(unit, "\n    ", "\n")[4:] + "\n"
	_, line, starts := strings.Cut(unit, "\nExecStart=/usr/local/bin/jobledger ")
	line, _, _ = strings.Cut(line, "\n")
	if !found || !whole || !starts {
		t.Fatalf("the docs have the unit\n%s", unit)
	}
	s.ok(os.WriteFile(s.path("jobledger.service"), []byte(strings.ReplaceAll(unit, "/usr/local/bin/jobledger",
		program)), 0o600))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no",
		s.path("jobledger.service")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "jobledger.service:") {
		t.Errorf("the unit is\n%s\n%v\n%s", unit, err, out)
	}
	words := strings.Fields(strings.NewReplacer("/var/lib/jobledger/jobs.db", s.path(db), "127.0.0.1:8080",
		"127.0.0.1:0").Replace(line))
	server, _ := s.serve(words[1:]...)
	server.wantSaid("https://jobs.example.com/login#")
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
}
