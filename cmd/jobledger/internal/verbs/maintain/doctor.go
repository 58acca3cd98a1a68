package maintain

import (
	"context"
	"fmt"
	"os"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// Doctor examines what is around the ledger; verify checks what is in it.
func (p *Verbs) Doctor() cli.Verb {
	return cli.Verb{
		Name: "doctor", Group: cli.GroupLedger,
		Usage: "look for what is wrong around the ledger, and say what to do about it",
		About: "It looks at the files and their folder, owners and permissions, the file system, what SQLite " +
			"and the kernel say of who uses the ledger, guards, clocks, leases that no process sweeps, workers " +
			"that went silent, jobs that no worker takes, queues that fail or are late, schedules that are not " +
			"carried out, and what is left lying about; with PostgreSQL at the " +
			"server and its settings, its clock, rights, who holds the write lock too long, and what keeps " +
			"vacuum back. Each finding has a code, says what was seen and what to do. A problem gives exit code " +
			"8; advice does not. It only reads, makes no file, and may run at any time, even on a damaged " +
			"ledger. 'jobledger verify' checks the history itself.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "also let SQLite check the whole file", DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger doctor", "exit 0 if there is no problem"},
			{"jobledger doctor --json | jq -r .code", "an object for each finding: code, severity, seen, remedy"},
		},
		Exits: []int{cli.ExitDiscrepancy},
		Run: func(c *cli.Context) error {
			report, err := p.Examine(c.Context, c.Bool("deep"))
			if err != nil {
				return cli.WithFolderHint(p.DB, err)
			}
			return p.printExamination(report)
		},
	}
}

// Examine returns what is wrong around the ledger.
func (p *Verbs) Examine(ctx context.Context, deep bool) (doctor.Report, error) {
	options := doctor.Options{Deep: deep, Now: p.Now, DBFlag: p.DBFlag(),
		Archive: os.Getenv("JOBLEDGER_ARCHIVE")}
	if ledger.IsServerAddress(p.DB) {
		address, err := ledger.ServerAddress(p.DB)
		if err != nil {
			return doctor.Report{}, err
		}
		options.Logs, _ = logs.Folder(address) // without a home there are no logs
	}
	return doctor.Examine(ctx, p.DB, options)
}

func (p *Verbs) printExamination(r doctor.Report) error {
	for _, f := range r.Findings {
		if err := p.printFinding(f); err != nil {
			return err
		}
	}
	if n := r.Problems(); n > 0 {
		first := r.Findings[0]
		return cli.Exitf(cli.ExitDiscrepancy, "%s; the first: %s %s",
			words.Count(int64(n), "problem"), first.Code, first.Seen)
	}
	if p.JSON {
		return nil
	}
	return p.PrintLine(fmt.Sprintf("ok: no problem found with %s: %s, schema %d, %s",
		r.Ledger, words.Count(r.Events, "event"), r.Schema, r.Engine))
}

// printFinding prints what was seen and, below it, what to do.
func (p *Verbs) printFinding(f doctor.Finding) error {
	if p.JSON {
		return p.PrintJSON(f)
	}
	color := words.Yellow
	if f.Severity == doctor.Problem {
		color = words.Red
	}
	const indent = "     "
	lines := []string{f.Seen}
	if p.Width > 0 {
		lines = words.Wrap(f.Seen, max(20, min(p.Width, 100)-len(indent)-len(doctor.Problem)-1))
	}
	for i, line := range lines {
		lines[i] = words.Escape(line)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s  %s %s\n%s> %s\n", f.Code, p.Paint(color, string(f.Severity)),
		strings.Join(lines, "\n"+indent), indent, words.Escape(f.Remedy))
	return err
}
