package main

import (
	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/projection"
)

func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "why, for whoever reads the history: `TEXT`"}
}

var operatorExits = []int{exitConflict, exitNoJob, exitBusy}

// operate asks for command on each job that the arguments name. Each is tried, whatever became of those before, and
// every failure is said; the first one gives the exit code. tell makes the message about one that it was done to,
// with the job as it was and as it is.
func (p *program) operate(c *cli.Context, command commands.Command, tell func(before, after projection.Job) string) error {
	service, err := p.open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	names, code, failed := c.Args().Slice(), exitOK, 0
	for _, name := range names {
		before, err := p.jobNamed(c.Context, service, name)
		after := before
		if err == nil {
			after, err = service.Apply(c.Context, p.actor, before.ID, command)
		}
		if err == nil {
			p.message("%s", tell(before, after))
			if p.json {
				err = p.printJSON(render.ToJSON(after))
			}
		}
		if err == nil {
			continue
		}
		thisCode, why, _ := explain(err)
		if len(names) == 1 || thisCode == exitBusy || thisCode == exitUnexpected {
			return err // that would be said of every other one too
		}
		p.message("%s", why)
		if failed++; code == exitOK {
			code = thisCode
		}
	}
	if failed > 0 {
		return exitf(code, "could not %s %d of %d jobs", c.Command.Name, failed, len(names))
	}
	return nil
}
