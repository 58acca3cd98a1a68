package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
)

// The golden file has the complete text for an auditor, so that a change shows as a diff; -update rewrites
// it.
func TestAuditTranscript(t *testing.T) {
	const golden = "../../testdata/golden/audit.txt"
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	s := newScenario(t)
	j := string(s.lost().ID)
	s.rest()
	s.wait(5 * time.Minute)
	var out strings.Builder
	show := s.transcript(&out)
	show(0, "attempts")
	show(100, "attempts", "--overlap")
	show(0, "attempts", "--worker", "w1", "--json")
	show(0, "attempts", "--outcome", "open", "--outcome", "failed", "--json")
	show(0, "owner", j, "--at", "2026-01-02T03:04:30Z")
	show(0, "owner", j, "--at", "pos:5", "--json")
	show(0, "owner", j, "--at", "pos:4")
	show(0, "status", "--as-of", "pos:5")
	show(0, "status", "--as-of", "pos:5", "--json")
	show(0, "list", "--as-of", "pos:5")
	show(0, "show", j, "--as-of", "pos:5")
	show(0, "diff", "--from", "pos:5")
	show(0, "diff", "--from", "pos:5", "--to", "pos:11", "--json")
	show(0, "why", j)
	queued := s.enqueue(commands.Enqueue{Queue: "mail", Requires: []string{"tpu"}, Payload: []byte("x")}).ID
	soon := s.enqueue(commands.Enqueue{Queue: "mail", RunAt: s.Now.Add(time.Hour)}).ID
	check(t, s.WorkerStarted(t.Context(), s.worker("w4"), []string{"mail"}, []string{"gpu"}))
	show(0, "why", string(queued))
	show(80, "why", string(soon))
	for _, id := range []string{"01KDY9FY88TH00000000000009", "01KDY9FY88TH00000000000011",
		"01KDY9FY88TH00000000000012", "01KDY9FY88TH00000000000014"} {
		show(0, "why", id)
	}
	if *update {
		check(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != out.String() {
		t.Errorf("%v; got\n%s", err, out.String())
	}
}
