package main

import (
	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/projection"
)

func retryVerb(p *program) verb {
	return verb{
		name: "retry", group: groupOperate, usage: "queue jobs that have ended once more",
		about: "A job that has failed, succeeded or was cancelled is to run now, with its failures counted from 0 again. " +
			"Of several jobs each is tried; the first failure gives the exit code.",
		args: "JOB…", minArgs: 1, maxArgs: anyNumber,
		flags: []cli.Flag{reasonFlag()},
		examples: []example{
			{"jobledger retry 01JB2Q… --reason 'smtp is back'", "JOB is an id, or the beginning of one"},
			{"jobledger retry 01JB2Q… 01JB2R…", "each of them"},
		},
		exits: operatorExits,
		run: func(c *cli.Context) error {
			return p.operate(c, commands.Retry{Reason: c.String("reason")}, func(_, after projection.Job) string {
				return p.standing(after)
			})
		},
	}
}
