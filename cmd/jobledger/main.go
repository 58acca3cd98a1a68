// Command jobledger is a job queue that keeps a ledger of everything that ever happened to a job.
//
// Held by TestVerbsAreWellFormed, TestServeSeveralLedgers, TestPipeAnswersNextToAWait and
// TestScripts/token.
package main

import (
	"context"
	"fmt"
	"os"

	"jobledger/cmd/jobledger/internal/bench"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/demo"
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
