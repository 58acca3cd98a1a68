package operate

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/bulk"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Reschedule() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "reschedule", Group: cli.GroupOperate, Usage: "change when queued jobs run, or before which others",
		About: "--run-at takes a time with its zone (2026-05-04T15:04:05+02:00), 15:04 for the next one, or " +
			"+10m; a time that is past means now. Only jobs that are queued can be rescheduled. Of several jobs " +
			"each is tried; the first failure gives the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: whenFlags(),
		Examples: []cli.Example{
			{"jobledger reschedule 01JB2Q… --delay 0s", "now, however long its backoff"},
			{"jobledger reschedule 01JB2Q… --run-at 02:30 --reason 'after the backup'", "at the next half past two"},
			{"jobledger reschedule 01JB2Q… --priority 50", "before those of lower priority"},
			{"jobledger reschedule -q mail --state queued --delay 1h --spread 30m --reason 'smtp is down'",
				"all that are queued, in an hour to an hour and a half"},
		},
		Exits: jobverb.OperatorExits,
		Run: func(c *cli.Context) error {
			command, err := p.whenAsked(c)
			if err != nil {
				return err
			}
			if command.RunAt == nil && command.Priority == nil {
				return cli.Usagef("nothing to change: give --run-at, --delay or --priority")
			}
			if isBulk(c) {
				return p.rescheduleMany(c, command)
			}
			if err := notBulk(c, mayReschedule); err != nil {
				return err
			}
			return jobverb.Operate(p.Program, c, command, func(before, after projection.Job) string {
				if before.Seq == after.Seq {
					return fmt.Sprintf("%s, with priority %d, already", print.JobState(after, p.Now()), after.Priority)
				}
				return fmt.Sprintf("%s, with priority %d", print.JobState(after, p.Now()), after.Priority)
			})
		},
	}, mayReschedule)
}

// rescheduleMany carries out command on the jobs that a filter selects.
func (p *Verbs) rescheduleMany(c *cli.Context, command commands.Reschedule) error {
	spread, err := spreadOf(c, command)
	if err != nil {
		return err
	}
	return p.bulk(c, bulkAct{past: "rescheduled", may: mayReschedule,
		choose: func(j projection.Job) commands.Command { return spread(j) }})
}

// whenFlags are those of the verbs that change when jobs run.
func whenFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "run-at", Usage: "not before `TIME`, such as 02:00 or 'fri 2pm'"},
		cli.DurationFlag("delay", "not before `D` from now; 0s is now", "", 0, commands.MaxRunTime, true),
		cli.WholeFlag("priority", "`N` from -100 to 100; higher is claimed first", 0, -commands.MaxPriority,
			commands.MaxPriority, "as it is"),
		jobverb.ReasonFlag(), spreadFlag(),
	}
}

// whenAsked reads whenFlags, without the spread. RunAt is overwritten when the times are read.
func (p *Verbs) whenAsked(c *cli.Context) (command commands.Reschedule, err error) {
	runAt, given, err := jobverb.RunAt(p.Program, c)
	if err != nil {
		return command, err
	}
	command.Reason = c.String("reason")
	if given {
		command.RunAt = &runAt
	}
	if c.IsSet("priority") {
		command.Priority = new(c.Int("priority"))
	}
	p.ReparseTimes = func() { runAt, _, _ = jobverb.RunAt(p.Program, c) } // command has its address
	return command, nil
}

// spreadOf returns what command is for each job, with --spread.
func spreadOf(c *cli.Context, command commands.Reschedule) (func(projection.Job) commands.Reschedule, error) {
	spread, spreads := cli.DurationValue(c, "spread")
	if spreads && command.RunAt == nil {
		return nil, cli.Usagef("--spread needs --run-at or --delay, from which on the jobs are to run")
	}
	return func(j projection.Job) commands.Reschedule {
		each := command
		if each.RunAt != nil {
			each.RunAt = new(command.RunAt.Add(bulk.Spread(j.ID, spread)))
		}
		return each
	}, nil
}
