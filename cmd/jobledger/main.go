// Command jobledger is a job queue that keeps a ledger of everything that ever happened to a job.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(newProgram().run(context.Background(), os.Args[1:]))
}
