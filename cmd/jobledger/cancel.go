package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/projection"
)

func cancelVerb(p *program) verb {
	return verb{
		name: "cancel", group: groupOperate, usage: "end jobs that have not ended",
		about: "A worker that is at the job learns of it with its next heartbeat, and 'jobledger work' then kills the command. " +
			"Of several jobs each is tried; the first failure gives the exit code.",
		args: "JOB…", minArgs: 1, maxArgs: anyNumber,
		flags: []cli.Flag{reasonFlag()},
		examples: []example{
			{"jobledger cancel 01JB2Q… --reason 'sent twice'", "JOB is an id, or the beginning of one"},
			{"jobledger cancel 01JB2Q… 01JB2R… 01JB2S…", "each of them"},
		},
		exits: operatorExits,
		run: func(c *cli.Context) error {
			return p.operate(c, commands.Cancel{Reason: c.String("reason")}, func(before, after projection.Job) string {
				switch {
				case before.Seq == after.Seq:
					return fmt.Sprintf("job %s in %s is cancelled already", after.ID, after.Queue)
				case before.State.Held():
					return fmt.Sprintf("%s; worker %s, who was at it, learns of it with its next heartbeat", p.standing(after), before.Worker.Name)
				}
				return p.standing(after)
			})
		},
	}
}
