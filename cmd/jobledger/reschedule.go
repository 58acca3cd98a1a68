package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/projection"
)

func rescheduleVerb(p *program) verb {
	return verb{
		name: "reschedule", group: groupOperate, usage: "change when queued jobs run, or before which others",
		about: "--run-at takes a time with its zone (2026-05-04T15:04:05+02:00), 15:04 for the next one, or +10m; a time that is past " +
			"means now. Only jobs that are queued can be rescheduled. Of several jobs each is tried; the first failure gives the exit code.",
		args: "JOB…", minArgs: 1, maxArgs: anyNumber,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "run-at", Usage: "not before `TIME`"},
			durationFlag("delay", "not before `D` from now; 0s is now", "", 0, commands.MaxRunTime, true),
			wholeFlag("priority", "`N` from -100 to 100; higher is claimed first", 0, -commands.MaxPriority, commands.MaxPriority, "as it is"),
			reasonFlag(),
		},
		examples: []example{
			{"jobledger reschedule 01JB2Q… --delay 0s", "now, however long its backoff"},
			{"jobledger reschedule 01JB2Q… --run-at 02:30 --reason 'after the backup'", "at the next half past two"},
			{"jobledger reschedule 01JB2Q… --priority 50", "before those of lower priority"},
		},
		exits: operatorExits,
		run: func(c *cli.Context) error {
			runAt, given, err := p.runAt(c)
			if err != nil {
				return err
			}
			command := commands.Reschedule{Reason: c.String("reason")}
			if given {
				command.RunAt = &runAt
			}
			if c.IsSet("priority") {
				priority := c.Int("priority")
				command.Priority = &priority
			}
			if command.RunAt == nil && command.Priority == nil {
				return usagef("nothing to change: give --run-at, --delay or --priority")
			}
			p.recount = func() { runAt, _, _ = p.runAt(c) } // command has its address
			return p.operate(c, command, func(before, after projection.Job) string {
				if before.Seq == after.Seq {
					return fmt.Sprintf("%s, with priority %d, already", p.standing(after), after.Priority)
				}
				return fmt.Sprintf("%s, with priority %d", p.standing(after), after.Priority)
			})
		},
	}
}
