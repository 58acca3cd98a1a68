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

func (p *Verbs) Fail() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "fail", Group: cli.GroupPrimitives, Usage: "report that a claimed job failed",
		About: "The job is queued again, the longer the more often it has failed: after about 1 s, 2 s, 4 s … " +
			"up to 1 h. When it has failed as often as its --max-attempts, it stays failed, until an operator says " +
			"'jobledger retry'.\n" +
			jobverb.AboutEnding,
		Args: "[JOB]", MaxArgs: 1,
		Flags: jobverb.OwnerFlags(
			&cli.StringFlag{Name: "code", Usage: "what kind of failure, in one `WORD`", DefaultText: "failed"},
			&cli.StringFlag{Name: "detail", Usage: "what happened: `TEXT`, up to 8 KiB; bytes that are not UTF-8 " +
				"become U+FFFD"},
			cli.DurationFlag("retry-in", "queue it again in `D`", "", 0, commands.MaxRunTime, true),
			&cli.BoolFlag{Name: "no-retry", Usage: "never again", DisableDefaultText: true},
		),
		Examples: []cli.Example{
			{"jobledger fail 01JB2Q… --token 01JB2R… --code smtp --detail 'no route to host'",
				"it is tried again later"},
			{"jobledger fail 01JB2Q… --token 01JB2R… --no-retry", "it would fail every time"},
		},
		Exits: jobverb.OwnerExits,
		Run: func(c *cli.Context) error {
			fail := commands.Fail{Code: c.String("code"), NoRetry: c.Bool("no-retry"),
				Detail: asText(c.String("detail"))}
			if retryIn, given := cli.DurationValue(c, "retry-in"); given {
				fail.RetryIn = &retryIn
			}
			if fail.NoRetry && fail.RetryIn != nil {
				return cli.Usagef("--retry-in and --no-retry cannot be combined")
			}
			return jobverb.AsOwner(p.Program, c, func(_ projection.Job, token, owner string) commands.Command {
				fail.Token, fail.Owner = token, owner
				return fail
			})
		},
	})
}

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
