package main

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/projection"
)

func reasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "why, for readers of the history: `TEXT`"}
}

var operatorExits = []int{cli.ExitConflict, cli.ExitNoJob, cli.ExitBusy}

// operate asks for command on each job that the arguments name. Each is tried, whatever became of those
// before, and every failure is said; the first one gives the exit code. describe makes the message about one
// that it was done to, with the job as it was and as it is.
func (p *program) operate(c *cli.Context, command commands.Command, describe func(before,
	after projection.Job) string) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	names, code, failed := c.Args().Slice(), cli.ExitOK, 0
	for _, name := range names {
		before, err := p.FindJob(c.Context, service, name)
		after := before
		if err == nil {
			after, err = service.Apply(c.Context, p.Actor, before.ID, command)
		}
		if err == nil {
			p.Message("%s", describe(before, after))
			if p.JSON {
				err = p.PrintJSON(render.ToJSON(after))
			}
		}
		if err == nil {
			continue
		}
		thisCode, why, _ := cli.Explain(err)
		if len(names) == 1 || thisCode == cli.ExitBusy || thisCode == cli.ExitUnexpected {
			return err // that would be said of every other one too
		}
		p.Message("%s", why)
		if failed++; code == cli.ExitOK {
			code = thisCode
		}
	}
	if failed > 0 {
		return cli.Exitf(code, "could not %s %d of %d jobs", c.Command.Name, failed, len(names))
	}
	return nil
}
