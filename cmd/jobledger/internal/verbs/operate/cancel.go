package operate

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Cancel() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "cancel", Group: cli.GroupOperate, Usage: "end jobs that have not ended",
		About: "A worker that runs the job learns of it at once, with its next heartbeat at the latest; " +
			"'jobledger work' then kills the command. Of several jobs each is tried; the first failure gives " +
			"the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{jobverb.ReasonFlag()},
		Examples: []cli.Example{
			{"jobledger cancel 01JB2Q… --reason 'sent twice'", "JOB is an id, or the beginning of one"},
			{"jobledger cancel 01JB2Q… 01JB2R… 01JB2S…", "each of them"},
			{"jobledger cancel -q mail --tag campaign=17 --dry-run", "how many of the queue have this tag"},
		},
		Exits: jobverb.OperatorExits,
		Run: func(c *cli.Context) error {
			command := commands.Cancel{Reason: c.String("reason")}
			if isBulk(c) {
				return p.bulk(c, bulkAct{past: "cancelled", may: mayCancel,
					choose: func(projection.Job) commands.Command { return command }})
			}
			if err := notBulk(c, mayCancel); err != nil {
				return err
			}
			return jobverb.Operate(p.Program, c, command, func(before,
				after projection.Job) string {
				switch {
				case before.Seq == after.Seq:
					return fmt.Sprintf("job %s in %s is cancelled already", after.ID, after.Queue)
				case before.State.Held():
					return fmt.Sprintf("%s; worker %s, who was at it, learns of it now",
						print.JobState(after, p.Now()), before.Worker.Name)
				}
				return print.JobState(after, p.Now())
			})
		},
	}, mayCancel)
}
