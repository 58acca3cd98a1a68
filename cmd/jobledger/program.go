package main

import (
	"context"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
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

// atCopy is [cli.Program.AtCopy] on a snapshot of its own.
func (p *program) atCopy(c *cli.Context, service *commands.Service) (then *program, err error) {
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		stopped, err := p.AtCopy(c, tx)
		then = &program{stopped}
		return err
	})
	return then, err
}
