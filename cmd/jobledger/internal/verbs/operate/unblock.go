package operate

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Unblock() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "unblock", Group: cli.GroupOperate, Usage: "lift the hold of jobs that were enqueued with --hold",
		About: "A job that waits for no other one is queued then; the others stay blocked until these have " +
			"ended. What a job waits for besides a hold cannot be lifted: 'jobledger why' names it.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{jobverb.ReasonFlag()},
		Examples: []cli.Example{
			{"jobledger unblock 01JB2Q… --reason 'all of the batch is there'",
				"JOB is an id, or the beginning of one"},
		},
		Exits: jobverb.OperatorExits,
		Run: func(c *cli.Context) error {
			return jobverb.Operate(p.Program, c, commands.Unblock{Reason: c.String("reason")},
				func(_, after projection.Job) string { return print.JobState(after, p.Now()) })
		},
	})
}
