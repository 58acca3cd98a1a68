package main

import (
	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/projection"
)

func releaseVerb(p *program) verb {
	return verb{
		name: "release", group: groupPrimitives, usage: "give a claimed job back unfinished",
		about: "The job is queued again for anybody, and this counts as no failure.\n" + aboutEnding,
		args:  "[JOB]", maxArgs: 1,
		flags: ownerFlags(
			&cli.StringFlag{Name: "reason", Usage: "why, for whoever reads the history: `TEXT`"},
			durationFlag("delay", "not to be claimed for `D`", "", 0, commands.MaxRunTime, true),
		),
		examples: []example{
			{"jobledger release 01JB2Q… --token 01JB2R… --reason 'shutting down'", "the next claim may have it at once"},
			{"jobledger release 01JB2Q… --token 01JB2R… --delay 5m", "it will be ready in five minutes"},
		},
		exits: ownerExits,
		run: func(c *cli.Context) error {
			delay, _ := durationOf(c, "delay")
			return p.asOwner(c, func(_ projection.Job, token, owner string) commands.Command {
				return commands.Release{Token: token, Owner: owner, Reason: c.String("reason"), Delay: delay}
			})
		},
	}
}
