package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// Durations count from now by the clock of the ledger, which is known only when the ledger is open.
func TestDelayUsesLedgerClock(t *testing.T) {
	db := ledgertest.Open(t).DSN()
	jobs := filepath.Join(t.TempDir(), "jobs.jsonl")
	check(t, os.WriteFile(jobs, []byte(`{"delay": "1h"}`+"\n"+`{"run_at": "+1h"}`+"\n{}\n"), 0o600))
	id := ""
	for _, tt := range []struct {
		line string
		jobs int
	}{
		{"enqueue -q mail --delay 1h", 1}, {"enqueue -q mail --run-at +1h", 1},
		{"enqueue -q mail --delay 1h --jsonl " + jobs, 3},
		{"reschedule JOB --delay 1h", 1}, {"reschedule JOB --run-at +1h --priority 1", 1},
	} {
		p, out := printing(0, false)
		p.ClockSkew = time.Hour // as if another ledger had been opened before
		p.Now = func() time.Time { return time.Now().Add(time.Hour) }
		asked := time.Now()
		if code := p.run(t.Context(), append(strings.Fields(strings.Replace(tt.line, "JOB", id, 1)), "--json",
			"--db", db)); code != cli.ExitOK {
			t.Fatalf("%s: exit code %d", tt.line, code)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != tt.jobs {
			t.Errorf("%s: printed %q", tt.line, lines)
		}
		for _, line := range lines {
			var j struct {
				ID    string
				RunAt time.Time `json:"run_at"`
			}
			check(t, json.Unmarshal([]byte(line), &j))
			if off := j.RunAt.Sub(asked.Add(time.Hour)); off.Abs() > 10*time.Minute {
				t.Errorf("%s: run_at is off by %s", tt.line, off)
			}
			id = j.ID
		}
	}
}
