package main

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/jobverb"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func retryVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "retry", Group: cli.GroupOperate, Usage: "queue jobs that have ended once more",
		About: "A job that has failed or was cancelled is to run now, with its failures counted from 0 again. " +
			"To run a job once more that has succeeded, its effects included, say --succeeded; on a terminal " +
			"you are asked otherwise, and a script gets 6. " +
			"A cancelled job whose last command may still run waits for its end: the worker " +
			"records it, and the lease ends it at the latest; --now does not wait.\n" +
			"Of several jobs each is tried; the first failure gives the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{jobverb.ReasonFlag(),
			&cli.BoolFlag{Name: "now", Usage: "do not wait for a command that may still run",
				DisableDefaultText: true},
			&cli.BoolFlag{Name: "succeeded", Usage: "jobs that have succeeded too", DisableDefaultText: true}},
		Examples: []cli.Example{
			{"jobledger retry 01JB2Q… --reason 'smtp is back'", "JOB is an id, or the beginning of one"},
			{"jobledger retry 01JB2Q… 01JB2R…", "each of them"},
			{"jobledger retry 01JB2Q… --succeeded --reason 'the report was wrong'", "though it has succeeded"},
		},
		Exits: jobverb.OperatorExits,
		Run: func(c *cli.Context) error {
			return jobverb.OperateWith(p.Program, c, func(before projection.Job) (commands.Command, error) {
				return p.chooseRetry(c, before)
			}, func(before, after projection.Job) string { return p.describeRetry(c, before, after) })
		},
	})
}

// chooseRetry is the retry of a job that stands so. The rules judge once more whether it has succeeded: it
// may have done so since it was read.
func (p *program) chooseRetry(c *cli.Context, j projection.Job) (commands.Command, error) {
	retry := commands.Retry{Reason: c.String("reason"), NotSucceeded: !c.Bool("succeeded"), Now: c.Bool("now")}
	if j.State != event.SucceededState || !retry.NotSucceeded || j.Erased {
		return retry, nil
	}
	if !p.CanAsk() {
		return nil, cli.WithHint(cli.Exitf(cli.ExitConflict, "retry job %s: it has succeeded", j.ID),
			"--succeeded runs it once more")
	}
	if !p.Ask("job %s in %s has succeeded; run it once more?", j.ID, j.Queue) {
		return nil, cli.Exitf(cli.ExitConflict, "retry job %s: it has succeeded, and is left as it is", j.ID)
	}
	retry.NotSucceeded = false
	return retry, nil
}

// describeRetry says where the job stands, and what it waits for.
func (p *program) describeRetry(c *cli.Context, before, after projection.Job) string {
	text := layout.JobState(after, p.Now())
	if c.Bool("now") || !after.RunAt.After(p.Now()) {
		return text
	}
	const waits = "%s; its last command may still run on %s (pid %d) until %s; --now runs it regardless"
	return fmt.Sprintf(waits, text, render.OrNone(before.Worker.Host), before.Worker.PID,
		render.Time(after.RunAt.In(p.Now().Location())))
}
