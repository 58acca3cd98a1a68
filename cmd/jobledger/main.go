// Command jobledger is a job queue that keeps a ledger of everything that ever happened to a job.
package main

import (
	"context"
	"fmt"
	"os"

	"jobledger/commands/worker/child"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "supervise" { // the parent of a worker's command; see child.Supervise
		if err := child.Supervise(); err != nil {
			fmt.Fprintln(os.Stderr, programName+":", err)
			os.Exit(exitUsage)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == sumWord { // the demo's twin of sha256sum
		if err := sumStdin(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, programName+":", err)
			os.Exit(exitUnexpected)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == benchWord { // one more process of bench
		if err := benchAsProcess(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, programName+":", err)
			os.Exit(exitUnexpected)
		}
		return
	}
	os.Exit(newProgram().run(context.Background(), os.Args[1:]))
}
