package operate

import (
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/projection"
)

// Edit changes jobs that wait.
func (p *Verbs) Edit() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "edit", Group: cli.GroupOperate, Usage: "change jobs that wait: their command, time, limits",
		About: "Only jobs that are queued or blocked can be edited: one that is claimed has begun with " +
			"what it had, and 'retry --max-runtime' gives one that has ended more time. What is not " +
			"given stays. Time and priority are changed as by 'reschedule', in the same transaction. " +
			"-- CMD replaces the command that a job carries, and keeps its folder, environment and " +
			"input; --dir, --env, --env-file and --stdin change these. --payload replaces the " +
			"payload of any job. With nothing to change, on a terminal, $VISUAL or $EDITOR opens the " +
			"command of the job, or its payload. With fewer --max-attempts than it has failures, the " +
			"next failure is the last one. Of several jobs each is tried; the first failure gives " +
			"the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Rest: "CMD ARGS…",
		RestIf: func(args, _ []string, given map[string]bool) bool { // names may follow -- too
			return len(args) > 0 || given["key"] || given["last"]
		},
		Flags: slices.Concat([]cli.Flag{
			cli.DurationFlag("max-runtime", "from now on an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			cli.WholeFlag("max-attempts", "give up after `N` failures", 0, 1, commands.MaxMaxAttempts, "as it is"),
			&cli.StringFlag{Name: "backoff", Usage: "how long to wait after failures: `'min 1s, max 1h, factor 2'`"},
			&cli.StringFlag{Name: "payload", Usage: "the payload becomes that of `FILE`, or of - this input"},
		}, jobcmd.FormFlags(), whenFlags()),
		Examples: []cli.Example{
			{"jobledger edit 01JB2Q… --max-runtime 3h --reason 'it has grown'", "before it is claimed"},
			{"jobledger edit 4711 -- convert -quality 80 a.png a.webp", "another command"},
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
	replaces, err := p.replaces(c)
	if err != nil {
		return err
	}
	if command.RunAt == nil && command.Priority == nil && command.MaxAttempts == 0 && command.MaxRuntime == 0 &&
		!c.IsSet("backoff") && !replaces {
		if p.CanAsk() && !isBulk(c) {
			return p.editByHand(c)
		}
		return cli.Usagef("nothing to change: give --max-runtime, --max-attempts, --backoff, --priority, " +
			"--run-at, --delay, --payload or -- CMD")
	}
	if !isBulk(c) {
		if err := notBulk(c, mayReschedule); err != nil {
			return err
		}
		payload, err := p.newPayload(c, replaces)
		if err != nil {
			return err
		}
		choose := func(s *commands.Service, before projection.Job) (_ commands.Command, err error) {
			each := command
			each.Payload, err = payload(s, before)
			return each, err
		}
		return jobverb.OperateWith(p.Program, c, choose, func(before, after projection.Job) string {
			if before.Seq == after.Seq {
				return fmt.Sprintf("%s, as asked for already", print.JobState(after, p.Now()))
			}
			return print.JobState(after, p.Now())
		})
	}
	if replaces {
		return cli.Usagef("a filter changes times and limits; a command or a payload is changed job by job")
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
