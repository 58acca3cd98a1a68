package main

import (
	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/projection"
)

func succeedVerb(p *program) verb {
	return verb{
		name: "succeed", group: groupPrimitives, usage: "finish a claimed job",
		about: aboutEnding,
		args:  "[JOB]", maxArgs: 1,
		flags: ownerFlags(
			&cli.StringFlag{Name: "result", Usage: "what came of it: `RESULT`, up to 1 MiB, or - for standard input"},
		),
		examples: []example{
			{"jobledger succeed 01JB2Q… --token 01JB2R…", "the job is done"},
			{"jobledger succeed 01JB2Q… --token 01JB2R… --result - <report.pdf", "with the file's exact bytes as the result"},
		},
		exits: ownerExits,
		run: func(c *cli.Context) error {
			var result []byte
			if c.IsSet("result") {
				var err error
				if result, err = p.body("result", c.String("result")); err != nil {
					return err
				}
			}
			return p.asOwner(c, func(_ projection.Job, token, owner string) commands.Command {
				return commands.Succeed{Token: token, Owner: owner, Result: result}
			})
		},
	}
}
