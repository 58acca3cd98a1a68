package main

import (
	"context"
	"sync"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/verbs/work"
	"jobledger/commands/archive"
)

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
