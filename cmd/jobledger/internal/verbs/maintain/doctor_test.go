package maintain

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	_ "jobledger/ledger/ledgertest" // its flags
)

// The verdict follows the findings: only problems are an error.
func TestDoctorVerdict(t *testing.T) {
	for _, tt := range []struct {
		findings []doctor.Finding
		ok       bool
	}{
		{nil, true},
		{[]doctor.Finding{{Code: "D27", Severity: doctor.Advice, Seen: "seen", Remedy: "remedy"}}, true},
		{[]doctor.Finding{{Code: "D26", Severity: doctor.Problem, Seen: "seen", Remedy: "remedy"},
			{Code: "D27", Severity: doctor.Advice, Seen: "seen", Remedy: "remedy"}}, false},
	} {
		out := new(strings.Builder)
		p := &Verbs{&cli.Program{Now: time.Now, DB: "postgres://x", Stdout: bufio.NewWriter(out)}}
		err := p.printExamination(doctor.Report{Ledger: "postgres://x", Findings: tt.findings})
		_ = p.Flush()
		found := strings.Contains(out.String(), "ok: no problem found with postgres://x")
		if (err == nil) != tt.ok || found != tt.ok {
			t.Errorf("%+v: %v, and it prints %s", tt.findings, err, out.String())
		}
	}
}
