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

func TestRunAtClockTimeIsNext(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no database of time zones: %v", err)
	}
	tests := []struct{ now, text, want string }{
		{"2026-05-04T10:15:00+02:00", "10:16", "2026-05-04T10:16:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:15", "2026-05-05T10:15:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "10:14:59", "2026-05-05T10:14:59+02:00"},
		{"2026-05-04T10:15:00+02:00", "+10m", "2026-05-04T10:25:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "-10m", "2026-05-04T10:05:00+02:00"},
		{"2026-05-04T10:15:00+02:00", "2026-05-04T01:00:00Z", "2026-05-04T03:00:00+02:00"},
		{"2026-03-29T01:00:00+01:00", "02:30", "2026-03-29T03:30:00+02:00"}, // does not exist on that day
		{"2026-03-29T12:00:00+02:00", "02:30", "2026-03-30T02:30:00+02:00"},
		{"2026-03-28T12:00:00+01:00", "11:00", "2026-03-29T11:00:00+02:00"},
		{"2026-10-24T12:00:00+02:00", "13:00", "2026-10-24T13:00:00+02:00"},
	}
	for _, tt := range tests {
		now, _ := time.Parse(time.RFC3339, tt.now)
		got, err := parseRunAt("--run-at", tt.text, now.In(zone))
		if err != nil || got.In(zone).Format(time.RFC3339) != tt.want {
			t.Errorf("%s at %s: got %v, %v, want %s", tt.text, tt.now, got, err, tt.want)
		}
	}
}

// What counts from now does so by the clock of the ledger, which is known only when that is open.
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
		p.ClockSkew = time.Hour // as if another ledger's clock had been
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
