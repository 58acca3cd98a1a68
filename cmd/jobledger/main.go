// Command jobledger is a job queue that keeps a ledger of everything that ever happened to a job.
//
// Held by TestVerbsAreWellFormed, TestServeSeveralLedgers, TestPipeAnswersNextToAWait and
// TestScripts/token.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"jobledger/cmd/jobledger/internal/bench"
	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/demo"
	"jobledger/cmd/jobledger/internal/verbs/work"
	"jobledger/commands/archive"
	"jobledger/commands/worker/child"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "supervise" { // the parent of a worker's command; see child.Supervise
		if err := child.Supervise(); err != nil {
			fmt.Fprintln(os.Stderr, cli.ProgramName+":", err)
			os.Exit(cli.ExitUsage)
		}
		return
	}
	cli.TuneGC()
	if len(os.Args) == 2 && os.Args[1] == demo.SumWord { // a worker of the demo where there is no sha256sum
		if err := demo.Sum(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, cli.ProgramName+":", err)
			os.Exit(cli.ExitUnexpected)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == bench.Word { // one more process of bench
		if err := bench.Process(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, cli.ProgramName+":", err)
			os.Exit(cli.ExitUnexpected)
		}
		return
	}
	os.Exit((&program{cli.NewProgram()}).run(context.Background(), os.Args[1:]))
}

// program is a [cli.Program] with its verbs.
type program struct{ *cli.Program }

// run runs the verb that typed names (the words after the program's name) and returns the exit code.
func (p *program) run(ctx context.Context, typed []string) int {
	p.Docs, p.Names = docs, p.names
	var once sync.Once
	ctx = archive.WithNotice(ctx, func(f archive.File) { once.Do(func() { p.sayReading(f) }) })
	return work.PrintShellExit(p.Program, typed, p.Run(ctx, typed, p.verbs()))
}

// sayReading says that f, and perhaps other files of the archive, are read whole, and how to be spared that.
func (p *program) sayReading(f archive.File) {
	if len(f.Parts) == 0 {
		p.Message("reading %s whole: the ledger does not say yet what its index is; 'jobledger archive describe' "+
			"spares that from then on", f.Path)
		return
	}
	p.Message("reading %s whole: its index is not the one that the ledger names; 'jobledger archive check' "+
		"makes it again", f.Path)
}

// versionVerb prints which build this is; also as "jobledger --version".
func versionVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "version", Group: cli.GroupSetUp, Usage: "print the version of this program",
		Examples: []cli.Example{
			{"jobledger version", "one line for a bug report"},
			{"jobledger version --json", "the same for a script"},
		},
		Run: func(*cli.Context) error {
			b := buildinfo.Read()
			return p.JSONOrLine(b, cli.ProgramName+" "+b.String())
		},
	}
}
