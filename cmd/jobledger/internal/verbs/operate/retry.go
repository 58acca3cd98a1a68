package operate

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/bulk"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func (p *Verbs) Retry() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "retry", Group: cli.GroupOperate, Usage: "queue jobs that have ended once more",
		About: "A job that has failed or was cancelled is to run now, with its failures counted from 0 again. " +
			"To run a job once more that has succeeded, its effects included, say --succeeded; on a terminal " +
			"you are asked otherwise, and a script gets 6. " +
			"A cancelled job whose last command may still run waits for its end: the worker " +
			"records it, and the lease ends it at the latest; --now does not wait.\n" +
			"The jobs that were cancelled because they wait for it wait once more; with --alone they stay as they " +
			"are. A job that was cancelled so and is named here runs without them.\n" +
			"--max-runtime is how long its attempts may take from then on: where the time was too short, they would " +
			"all fail.\n" +
			"Of several jobs each is tried; the first failure gives the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{jobverb.ReasonFlag(),
			&cli.BoolFlag{Name: "now", Usage: "do not wait for a command that may still run",
				DisableDefaultText: true},
			&cli.BoolFlag{Name: "succeeded", Usage: "jobs that have succeeded too", DisableDefaultText: true},
			&cli.BoolFlag{Name: "alone", Usage: "leave the jobs that were cancelled because of it as they are",
				DisableDefaultText: true},
			cli.DurationFlag("max-runtime", "from now on an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			spreadFlag()},
		Examples: []cli.Example{
			{"jobledger retry 01JB2Q… --reason 'smtp is back'", "JOB is an id, or the beginning of one"},
			{"jobledger retry 01JB2Q… 01JB2R…", "each of them"},
			{"jobledger retry 01JB2Q… --succeeded --reason 'the report was wrong'", "though it has succeeded"},
			{"jobledger retry 01JB2Q… --max-runtime 3h --reason 'it has grown'", "with more time than before"},
			{"jobledger retry -q mail --error smtp_421 --spread 10m --reason 'smtp is back'",
				"all of the queue that failed for good with this code, spread over ten minutes"},
			{"jobledger retry --last-failure f1-3c1a2b4d5e6f --reason 'the disk is free again'",
				"what failed last for this cause, which 'report failures --cause' names"},
		},
		Exits: jobverb.OperatorExits,
		Run: func(c *cli.Context) error {
			if isBulk(c) {
				return p.retryMany(c)
			}
			if err := notBulk(c, mayRetry); err != nil {
				return err
			}
			choose := func(_ *commands.Service, before projection.Job) (commands.Command, error) {
				return p.chooseRetry(c, before)
			}
			return jobverb.OperateWith(p.Program, c, choose, func(before, after projection.Job) string {
				return p.describeRetry(c, before, after)
			})
		},
	}, mayRetry)
}

// retryMany retries the jobs that a filter selects, none of which has succeeded.
func (p *Verbs) retryMany(c *cli.Context) error {
	if c.Bool("succeeded") {
		return cli.Usagef("--succeeded is for jobs that are named one by one: their effects come twice")
	}
	spread, _ := cli.DurationValue(c, "spread")
	alone := c.Bool("alone")
	runtime, _ := cli.DurationValue(c, "max-runtime")
	return p.bulk(c, bulkAct{past: "retried", may: mayRetry,
		skip: func(j projection.Job) bool { return j.Erased },
		choose: func(j projection.Job) commands.Command {
			return commands.Retry{Reason: c.String("reason"), NotSucceeded: true, Now: c.Bool("now"),
				Alone: alone, NotDependent: true, MaxRuntime: runtime, Delay: bulk.Spread(j.ID, spread)}
		}})
}

// chooseRetry is the retry of a job that stands so. The rules judge once more whether it has succeeded: it
// may have done so since it was read.
func (p *Verbs) chooseRetry(c *cli.Context, j projection.Job) (commands.Command, error) {
	retry := commands.Retry{Reason: c.String("reason"), NotSucceeded: !c.Bool("succeeded"), Now: c.Bool("now"),
		Alone: c.Bool("alone")}
	retry.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
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
func (p *Verbs) describeRetry(c *cli.Context, before, after projection.Job) string {
	text := print.JobState(after, p.Now())
	if c.Bool("now") || !after.RunAt.After(p.Now()) {
		return text
	}
	const waits = "%s; its last command may still run on %s (pid %d) until %s; --now runs it regardless"
	return fmt.Sprintf(waits, text, words.OrNone(before.Worker.Host), before.Worker.PID,
		words.Time(after.RunAt.In(p.Now().Location())))
}
