package main

import (
	"context"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/verbs/work"
)

// program is a [cli.Program] with its verbs.
type program struct{ *cli.Program }

// run runs the verb that typed names (the words after the program's name) and returns the exit code.
func (p *program) run(ctx context.Context, typed []string) int {
	p.Docs = docs
	return work.PrintShellExit(p.Program, typed, p.Run(ctx, typed, p.verbs()))
}
