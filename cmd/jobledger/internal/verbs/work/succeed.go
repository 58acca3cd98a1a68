package work

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Succeed() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "succeed", Group: cli.GroupPrimitives, Usage: "finish a claimed job",
		About: jobverb.AboutEnding,
		Args:  "[JOB]", MaxArgs: 1,
		Flags: jobverb.OwnerFlags(
			&cli.StringFlag{Name: "result", Usage: "what came of it: `RESULT`, up to 1 MiB, or - for standard input"},
		),
		Examples: []cli.Example{
			{"jobledger succeed 01JB2Q… --token 01JB2R…", "the job is done"},
			{"jobledger succeed 01JB2Q… --token 01JB2R… --result - <report.pdf",
				"with the file's exact bytes as the result"},
		},
		Exits: jobverb.OwnerExits,
		Run: func(c *cli.Context) error {
			var result []byte
			if c.IsSet("result") {
				var err error
				if result, err = p.ReadBody("result", c.String("result")); err != nil {
					return err
				}
			}
			return jobverb.AsOwner(p.Program, c, func(_ projection.Job, token, owner string) commands.Command {
				return commands.Succeed{Token: token, Owner: owner, Result: result}
			})
		},
	})
}
