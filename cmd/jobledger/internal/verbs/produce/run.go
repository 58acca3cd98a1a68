package produce

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/many"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/commands"
	"jobledger/commands/argv"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
)

// The queues of run, which makes them: of commands in the foreground, and of those in the background.
const (
	runQueue = "run"
	bgQueue  = "bg"
)

// Run runs a command with a record: now, or as a job that carries it.
func (p *Verbs) Run() cli.Verb {
	return cli.Verb{
		Name: "run", Group: cli.GroupProduce, Usage: "run a command, now or in the background, with a record",
		About: "It enqueues a job that carries CMD, its folder, its umask and a part of this environment, " +
			"and runs it: CMD's output comes as it is, the exit code is CMD's own, or 128 and the number " +
			"of the signal that ended it, 124 where --max-runtime did, and 125 where run itself failed. No " +
			"other process can take it. INT and TERM end the command (KILL comes after --kill-after) and " +
			"cancel the job. No shell is involved, but with --sh.\n" +
			"With -b the job waits in the queue bg, which runs one at a time until 'limit -q bg --running " +
			"N'; run prints the job and ends. A worker runs it: 'jobledger work --commands -q bg'. On a " +
			"terminal, one is started where none serves the queue; it ends after a minute without a job. " +
			"JOBLEDGER_START=no, or --no-start, leaves that to you.\n" +
			"Of this environment, PATH, LANG, LC_*, TZ and what --env names are recorded; HOME, USER and " +
			"SHELL are those of the worker's user. What is recorded stays in backups and exports: a secret " +
			"belongs into --env-file, of which only the path is recorded; the worker reads NAME=VALUE " +
			"lines from it at each start.\n" +
			many.About +
			"The queues run and bg are made at first use. Any other one is made by 'jobledger queue set -q " +
			"Q --commands'. Without a ledger in this folder, or one of the user's, the user's is made.",
		Rest: "CMD ARGS…", RestBegins: true, NoRest: "resume",
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "background", Aliases: []string{"b"}, Usage: "enqueue it for a worker, and end"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`", DefaultText: "run, or bg " +
				"with -b"},
		}, jobcmd.FormFlags(), []cli.Flag{
			&cli.StringFlag{Name: "title", Usage: "`TEXT` says what the job is, for ever"},
			cli.ListFlag("tag", "label the job, `NAME=VALUE`; may be repeated"),
			&cli.StringFlag{Name: "key", Usage: "`KEY` is unique in the queue: the same again is the same job"},
			cli.DurationFlag("max-runtime", "the command runs for `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			cli.WholeFlag("max-attempts", "give up after `N` failures", 0, 1, commands.MaxMaxAttempts, "that of "+
				"the queue, or 1"),
			cli.WholeFlag("priority", "-100 to 100; higher is claimed first", 0, -commands.MaxPriority,
				commands.MaxPriority, ""),
			cli.ListFlag("after", "with -b: wait until `JOB` has succeeded, or JOB:failed or JOB:finished; may be "+
				"repeated"),
			&cli.StringFlag{Name: "run-at", Usage: "with -b: not before `TIME`"},
			cli.DurationFlag("delay", "with -b: not before `D` from now", "", 0, commands.MaxRunTime, false),
			&cli.BoolFlag{Name: "hold", Usage: "with -b: wait until 'jobledger unblock'"},
			cli.DurationFlag("kill-after", "KILL comes `D` after TERM", "10s", time.Millisecond, time.Hour, false),
			cli.DurationFlag("lease", "a claim holds for `D` without a heartbeat", "1m", commands.MinLease,
				commands.MaxLease, false),
			&cli.BoolFlag{Name: "start", Usage: "with -b: start a worker where none serves the queue, on a " +
				"terminal or not"},
			&cli.BoolFlag{Name: "no-start", Usage: "with -b: start no worker"},
		}, many.Flags()),
		Examples: []cli.Example{
			{"jobledger run make -j4 test", "now, with its output and its exit code"},
			{"jobledger run -b --title nightly-image ./image.sh", "in the background"},
			{"jobledger run --sh 'gzip -c a | wc -c >size'", "a line for the shell"},
			{"ls *.jpg | jobledger run -j 4 --lines - --batch webp convert {} {.}.webp",
				"a job for each line, four at a time"},
			{"jobledger run --sh 'tar c {1} | ssh {2} tar x' ::: etc home ::: alpha beta",
				"a job for each of the four pairs"},
			{"jobledger run --resume webp", "what a halt, ^C or a crash left of a batch"},
			{"jobledger run -b --after 4711 --env-file ~/.backup-env ./backup.sh",
				"after another job, with a password that is not recorded"},
		},
		Exits: []int{cli.ExitNotSucceeded, cli.ExitBusy, cli.ExitTimedOut, cli.ExitRunFailed,
			cli.ExitCannotRun, cli.ExitNotFound},
		Run: p.run,
	}
}

func (p *Verbs) run(c *cli.Context) error {
	back := c.Bool("background")
	lines := many.Program{Program: p.Program, Carried: p.carried, MakeQueue: p.makeQueue}
	if is, err := lines.Is(c); is || err != nil {
		if err == nil {
			err = lines.Run(c)
		}
		return ofRun(err)
	}
	if !back {
		for _, name := range []string{"after", "run-at", "delay", "hold", "start", "no-start"} {
			if c.IsSet(name) {
				return ofRun(cli.Usagef("--%s goes with -b: without it the command runs now", name))
			}
		}
	}
	e, _, err := p.carried(c)
	if err == nil {
		err = p.UseOwnPlace()
	}
	if err != nil {
		return ofRun(err)
	}
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return ofRun(err)
	}
	defer service.Store.Close()
	if err := p.makeQueue(c, service, e.Queue); err != nil {
		return ofRun(err)
	}
	if back {
		return p.runLater(c, service, e)
	}
	return p.runNow(c, service, e)
}

// ofRun gives an error of jobledger the code that is not a command's.
func ofRun(err error) error {
	if err == nil {
		return nil
	}
	if quiet, ok := errors.AsType[*fault.Error](err); ok && quiet.Quiet {
		return err
	}
	_, _, hint := fault.Explain(err)
	return &fault.Error{Code: cli.ExitRunFailed, Err: err, Hint: hint}
}

// carried is the job that the flags and the words of the command describe, and what it carries.
func (p *Verbs) carried(c *cli.Context) (e commands.Enqueue, form argv.Form, err error) {
	form, err = jobcmd.Form(p.Program, c)
	if err != nil {
		return e, form, err
	}
	jobcmd.SaySecrets(p.Program, form)
	e = commands.Enqueue{Form: event.FormArgv, Key: c.String("key"), Priority: c.Int("priority"),
		MaxAttempts: c.Int("max-attempts"), Hold: c.Bool("hold"), Queue: c.String("queue")}
	if e.Queue == "" {
		if e.Queue = runQueue; c.Bool("background") {
			e.Queue = bgQueue
		}
	}
	e.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	if e.Payload, err = form.Encode(); err != nil {
		return e, form, cli.Usagef("%w", err)
	}
	if e.Tags, err = joblines.Tags("--tag", c.StringSlice("tag")); err != nil {
		return e, form, err
	}
	if title := c.String("title"); title != "" {
		e.Tags[state.TitleTag] = title
	}
	e.RunAt, _, err = jobverb.RunAt(p.Program, c)
	return e, form, cmp.Or(err, e.Check())
}

// makeQueue makes the queues of run what they are, where they are new: for commands, which are tried once,
// those in the background one at a time.
func (p *Verbs) makeQueue(c *cli.Context, service *commands.Service, queue string) error {
	if queue != runQueue && queue != bgQueue {
		return nil
	}
	var set defaults.Set
	err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		set, err = defaults.Current(c.Context, tx)
		return err
	})
	if _, known := set[queue]; known || err != nil {
		return err
	}
	const reason = "made by run"
	if queue == bgQueue {
		if _, err := service.Limit(c.Context, p.Actor, queue, limit.Spec{Running: 1}, reason); err != nil {
			return err
		}
	}
	_, err = service.SetCommands(c.Context, p.Actor, queue, true, reason)
	return err
}
