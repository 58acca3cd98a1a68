package work

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Release() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "release", Group: cli.GroupPrimitives, Usage: "give a claimed job back before it has ended",
		About: "The job is queued again for any worker, and this counts as no failure.\n" + jobverb.AboutEnding,
		Args:  "[JOB]", MaxArgs: 1,
		Flags: jobverb.OwnerFlags(
			&cli.StringFlag{Name: "reason", Usage: "why, for readers of the history: `TEXT`"},
			cli.DurationFlag("delay", "not to be claimed for `D`", "", 0, commands.MaxRunTime, true),
		),
		Examples: []cli.Example{
			{"jobledger release 01JB2Q… --token 01JB2R… --reason 'shutting down'",
				"the next claim may have it at once"},
			{"jobledger release 01JB2Q… --token 01JB2R… --delay 5m", "it will be ready in five minutes"},
		},
		Exits: jobverb.OwnerExits,
		Run: func(c *cli.Context) error {
			delay, _ := cli.DurationValue(c, "delay")
			return jobverb.AsOwner(p.Program, c, func(_ projection.Job, token, owner string) commands.Command {
				return commands.Release{Token: token, Owner: owner, Reason: asText(c.String("reason")), Delay: delay}
			})
		},
	})
}
