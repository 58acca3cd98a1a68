package main

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/projection"
)

func retryVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "retry", Group: cli.GroupOperate, Usage: "queue jobs that have ended once more",
		About: "A job that has failed, succeeded or was cancelled is to run now, with its failures counted from " +
			"0 again. Of several jobs each is tried; the first failure gives the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{reasonFlag()},
		Examples: []cli.Example{
			{"jobledger retry 01JB2Q… --reason 'smtp is back'", "JOB is an id, or the beginning of one"},
			{"jobledger retry 01JB2Q… 01JB2R…", "each of them"},
		},
		Exits: operatorExits,
		Run: func(c *cli.Context) error {
			return p.operate(c, commands.Retry{Reason: c.String("reason")}, func(_, after projection.Job) string {
				return p.describeState(after)
			})
		},
	}
}
