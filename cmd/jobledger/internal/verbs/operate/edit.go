package operate

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/projection"
)

// Edit changes jobs that wait.
func (p *Verbs) Edit() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "edit", Group: cli.GroupOperate, Usage: "change jobs that wait: their time, attempts, limits",
		About: "Only jobs that are queued or blocked can be edited: one that is claimed has begun with what it " +
			"had, and 'retry --max-runtime' gives one that has ended more time. What is not given stays. Time and " +
			"priority are changed as by 'reschedule', in the same transaction. With fewer --max-attempts than it " +
			"has failures, the next failure is the last one. Of several jobs each is tried; the first failure gives " +
			"the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: append([]cli.Flag{
			cli.DurationFlag("max-runtime", "from now on an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			cli.WholeFlag("max-attempts", "give up after `N` failures", 0, 1, commands.MaxMaxAttempts, "as it is"),
			&cli.StringFlag{Name: "backoff", Usage: "how long to wait after failures: `'min 1s, max 1h, factor 2'`"},
		}, whenFlags()...),
		Examples: []cli.Example{
			{"jobledger edit 01JB2Q… --max-runtime 3h --reason 'it has grown'", "before it is claimed"},
			{"jobledger edit 01JB2Q… --max-attempts 20 --backoff 'min 1m, max 1h, factor 2'", "more patience"},
			{"jobledger edit -q mail --state queued --max-attempts 20 --reason 'smtp is flaky today'",
				"all that are queued"},
		},
		Exits: jobverb.OperatorExits,
		Run:   p.edit,
	}, mayReschedule)
}

func (p *Verbs) edit(c *cli.Context) error {
	when, err := p.whenAsked(c)
	if err != nil {
		return err
	}
	command := commands.Edit{MaxAttempts: c.Int("max-attempts"), Reschedule: when}
	command.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	if command.Backoff, err = jobverb.Backoff(c); err != nil {
		return err
	}
	if command.RunAt == nil && command.Priority == nil && command.MaxAttempts == 0 && command.MaxRuntime == 0 &&
		!c.IsSet("backoff") {
		return cli.Usagef("nothing to change: give --max-runtime, --max-attempts, --backoff, --priority, " +
			"--run-at or --delay")
	}
	if !isBulk(c) {
		if err := notBulk(c, mayReschedule); err != nil {
			return err
		}
		return jobverb.Operate(p.Program, c, command, func(before, after projection.Job) string {
			if before.Seq == after.Seq {
				return fmt.Sprintf("%s, as asked for already", print.JobState(after, p.Now()))
			}
			return print.JobState(after, p.Now())
		})
	}
	spread, err := spreadOf(c, when)
	if err != nil {
		return err
	}
	return p.bulk(c, bulkAct{past: "edited", may: mayReschedule,
		choose: func(j projection.Job) commands.Command {
			each := command
			each.Reschedule = spread(j)
			return each
		}})
}
