package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

// doctorVerb looks for what is wrong around a ledger, where verify looks into it.
func doctorVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "doctor", Group: cli.GroupLedger, Usage: "look for what is wrong around the ledger, and say what to do about it",
		About: "It looks at the files and their folder, owners and permissions, the file system, what SQLite and the kernel say of who uses the ledger, " +
			"guards, clocks, leases that nobody sweeps, workers that went silent, jobs that nobody takes, and what is left lying about; " +
			"with PostgreSQL at the server and its settings, its clock, rights, who holds the write lock for long, and what keeps vacuum back. " +
			"Each finding has a code, says what was seen and what to do. A problem gives exit code 8; advice does not. " +
			"It only reads, makes no file, and may run at any time, on a ledger that is damaged too. 'jobledger verify' checks the history itself.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "also let SQLite check the whole file", DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger doctor", "exit 0 if there is no problem"},
			{"jobledger doctor --json | jq -r .code", "an object for each finding: code, severity, seen, remedy"},
		},
		Exits: []int{cli.ExitDiscrepancy},
		Run: func(c *cli.Context) error {
			d := &doctor{program: p, deep: c.Bool("deep")}
			if err := d.examine(c.Context); err != nil {
				return err
			}
			return d.report()
		},
	}
}

// How bad a finding is.
const (
	problem = "problem" // something does not work, or will not, or anybody can do harm
	advice  = "advice"  // somebody may want to know
)

// finding is one thing that doctor found.
type finding struct {
	Code     string `json:"code"` // one of the checks below
	Severity string `json:"severity"`
	Seen     string `json:"seen"`
	Remedy   string `json:"remedy"`
}

// The checks of doctor. Codes are for ever, scripts go by them.
const (
	checkWritable = "D01" // anybody may write
	checkReadable = "D02" // anybody may read
	checkFolder   = "D03"
	checkOwner    = "D04"
	checkLink     = "D05" // a symbolic one
	checkNames    = "D06" // hard links
	checkNetwork  = "D07"
	checkSpace    = "D08"
	checkWAL      = "D09" // it grows
	checkStray    = "D10" // a -wal, -shm or -journal of another file
	checkStopped  = "D11" // a process that holds a lock
	checkLeft     = "D12" // unfinished copies
	checkBell     = "D13"
	checkRead     = "D14" // it cannot be read
	checkPages    = "D15" // --deep
	checkSchema   = "D16"
	checkSettings = "D17"
	checkGuards   = "D18"
	checkClock    = "D19"
	checkLeases   = "D20" // nobody sweeps
	checkSilent   = "D21"
	checkPaused   = "D22"
	checkStranded = "D23"
	checkLogs     = "D24"
	checkWriter   = "D25" // somebody holds the write lock
	checkVacuum   = "D26" // something keeps it back
	checkRights   = "D27" // this user may not write
	checkServer   = "D28"
)

// doctor is one examination.
type doctor struct {
	*program
	deep     bool
	path     string // of the ledger, as it was given, from the root on
	real     string // the same without links
	findings []finding

	events, schema int64
	engine         string // and its version
}

func (d *doctor) problem(code, remedy, format string, args ...any) {
	d.findings = append(d.findings, finding{code, problem, fmt.Sprintf(format, args...), remedy})
}

func (d *doctor) advise(code, remedy, format string, args ...any) {
	d.findings = append(d.findings, finding{code, advice, fmt.Sprintf(format, args...), remedy})
}

// examine fails only where there is no ledger to examine.
func (d *doctor) examine(ctx context.Context) (err error) {
	if ledger.IsServerAddress(d.DB) {
		return d.examineServer(ctx)
	}
	path, options := cli.SplitDSN(d.DB)
	if d.path, err = filepath.Abs(path); err != nil {
		return err
	}
	d.real = d.path
	if real, err := filepath.EvalSymlinks(d.path); err == nil {
		d.real = real
	}
	if info, err := os.Stat(d.real); err == nil && info.Mode().IsRegular() {
		d.files(options) // before SQLite has looked: to root it gives what lies beside the ledger back to the owner
		d.users()
	}
	first := ledger.InspectFile(ctx, d.DB, func(*ledger.Tx, ledger.FileFacts) error { return nil })
	for _, none := range []error{ledger.ErrNoLedger, ledger.ErrNotALedger, ledger.ErrNewerSchema, fs.ErrNotExist} {
		if errors.Is(first, none) {
			return cli.WithFolderHint(d.DB, first)
		}
	}
	d.content(ctx, first)
	if strings.Contains(options, "sync=normal") {
		d.advise(checkSettings, "leave out ?sync=normal where no command may be lost", "--db says sync=normal: a power cut may lose the last commands")
	}
	return ctx.Err()
}

func (d *doctor) report() error {
	slices.SortStableFunc(d.findings, func(a, b finding) int {
		if a.Severity != b.Severity {
			return strings.Compare(b.Severity, a.Severity) // problems first
		}
		return strings.Compare(a.Code, b.Code)
	})
	problems := 0
	for _, f := range d.findings {
		if f.Severity == problem {
			problems++
		}
		if err := d.printFinding(f); err != nil {
			return err
		}
	}
	if problems > 0 {
		f := d.findings[0]
		return cli.Exitf(cli.ExitDiscrepancy, "%s; the first: %s %s", render.Count(int64(problems), "problem"), f.Code, f.Seen)
	}
	if d.JSON {
		return nil
	}
	return d.PrintLine(fmt.Sprintf("ok: no problem found with %s: %s, schema %d, %s", d.path, render.Count(d.events, "event"), d.schema, d.engine))
}

// printFinding prints what was seen and, below it, what to do.
func (d *doctor) printFinding(f finding) error {
	if d.JSON {
		return d.PrintJSON(f)
	}
	color := render.Yellow
	if f.Severity == problem {
		color = render.Red
	}
	const indent = "     "
	lines := []string{f.Seen}
	if d.Width > 0 {
		lines = render.Wrap(f.Seen, max(20, min(d.Width, 100)-len(indent)-len(problem)-1))
	}
	for i, line := range lines {
		lines[i] = render.Escape(line)
	}
	text := fmt.Sprintf("%s  %s %s\n%s> %s\n", f.Code, d.Paint(color, f.Severity), strings.Join(lines, "\n"+indent), indent, render.Escape(f.Remedy))
	_, err := d.Stdout.WriteString(text)
	return err
}

// command is a line that runs this program on this ledger.
func (d *doctor) command(words string) string {
	return cli.ProgramName + " " + words + d.DBFlag()
}

// since is t with its distance.
func (d *doctor) since(t time.Time) string {
	return fmt.Sprintf("%s (%s)", render.Time(d.Local(t)), render.Age(t, d.Now()))
}
