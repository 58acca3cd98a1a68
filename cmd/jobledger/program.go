package main

import (
	"context"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/projection"
)

// program is a [cli.Program] with the verbs as methods.
type program struct{ *cli.Program }

// run runs the verb that typed names (the words after the program's name) and returns the exit code.
func (p *program) run(ctx context.Context, typed []string) int {
	p.Docs = docs
	return p.printShellExit(typed, p.Run(ctx, typed, p.verbs()))
}

// at is p with its clock set to m.
func (p *program) at(m projection.Moment) *program { return &program{p.At(m)} }
