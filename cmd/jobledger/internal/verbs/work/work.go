package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/witness"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/commands/worker/child"
	"jobledger/projection"
)

func (p *Verbs) Work() cli.Verb {
	return cli.Verb{
		Name: "work", Group: cli.GroupWork, Usage: "run a command for each job of a queue",
		About: "The command gets the payload on its standard input and the job's id, token and attempt in the " +
			"environment (JOBLEDGER_JOB, JOBLEDGER_TOKEN, …). Exit code 0 is success; what it printed is the " +
			"result. 75 and 111 mean later, 100 means never again, everything else is a failure that is retried. " +
			"--exit-code changes that: 'succeed'; 'fail', to be tried again; 'fail-no-retry'; or 'release', to run " +
			"later with backoff.\n" +
			"What it writes goes to the worker's own stdout and stderr and is kept for 'jobledger logs', of a " +
			"flood the beginning and the end. With --no-capture nothing of it is kept: no files, no result, no " +
			"stderr in error_detail, no digests, only how many bytes there were.\n" +
			"The log goes to stderr: a line for each attempt that failed or was given back, with the time, the " +
			"queue, the exit code and the worker; with --json as objects.\n" +
			"The command inherits this environment; with --env only what is named so, and " +
			strings.Join(worker.BaseEnv(), ", ") + ".\n" +
			"The first INT, TERM or HUP stops claiming and lets running commands finish; the second, or " +
			"--grace-period, ends them and gives their jobs back, which is not a failure.\n" +
			"--commands runs what the jobs carry, jobs of a queue of 'queue set --commands', and takes no others. " +
			"The right to do so is this command line's alone: the ledger must be this user's own, a file that " +
			"only this user and root may write, in folders that no other user may write, and with no events from an " +
			"import. --commands-from any runs commands from every ledger: all who may write it can then run " +
			"programs as " +
			"this user. Root runs commands from root's own ledger only. A command that cannot be run fails its " +
			"job for good, with cannot_run, not_found, no_folder or bad_env_file, and the worker goes on. Where the " +
			"ledger is opened to others later, the worker ends with 2.\n" +
			"--drain ends with 0 though jobs of the queue may be left that others hold, that run later, that are " +
			"blocked, or whose queue is paused: a line for each queue says how many. " +
			"'jobledger wait -q' waits for them.\n" +
			"--until-done goes on until no job of its queues is left that has not ended: it waits for others, " +
			"for what is to be tried again, and for dependents. It ends with 0; with 9 if jobs " +
			"failed for good or were cancelled meanwhile; with 75 where only what is paused or held is left, or a " +
			"signal came; and with 124 after --timeout, when the commands under way have ended or --grace-period " +
			"is over.\n" +
			"Where the ledger is away, busy or on a full disk, it waits, also at its start, unless --once, --drain, " +
			"--until-done or --max-jobs give it an end: then it ends with 75.\n" +
			"Where the ledger is sealed and is not a continuation of what this host saw last, nothing is claimed " +
			"(8): see 'jobledger witness --help'." + cli.AboutRemote,
		Rest: "CMD ARGS…", NoRest: "commands",
		Renamed: map[string]string{"map": "exit-code", "finish-within": "grace-period"},
		Flags: append([]cli.Flag{
			cli.ListFlag("queue", "claim from `QUEUE`; may be repeated", "q"),
			cli.WholeFlag("jobs", "run `N` commands at a time", 1, 1, 1000, "", "j"),
			&cli.BoolFlag{Name: "commands", Usage: "run what each job carries, in place of CMD"},
			&cli.StringFlag{Name: "commands-from", Usage: "whose commands: `any` runs those of all who may write " +
				"the " +
				"ledger", DefaultText: "those of this user's own ledger"},
			&cli.BoolFlag{Name: "once", Usage: "take one job and end; 3 if none is ready"},
			&cli.BoolFlag{Name: "drain", Usage: "end when nothing is ready and all of its own jobs have ended; " +
				"says what is left"},
			&cli.BoolFlag{Name: "until-done", Usage: "end when no job of its queues is left to do, for anybody"},
			cli.DurationFlag("timeout", "with --until-done: after `D`, claim no more and end with 124", "", 0, 0,
				false),
			cli.DurationFlag("idle-exit", "end after `D` without a job", "", time.Second, 24*time.Hour, false),
			cli.WholeFlag("max-jobs", "end after `N` jobs", 0, 1, 1_000_000_000, "no end"),
			cli.DurationFlag("lease", "a claim holds for `D` without a heartbeat; heartbeats come every third of it",
				"1m", commands.MinLease, commands.MaxLease, false),
			cli.DurationFlag("max-runtime", "no command runs longer than `D`", "", time.Millisecond,
				commands.MaxRunTime, false),
			cli.DurationFlag("grace-period", "when asked to stop, give back what is not done after `D`", "",
				time.Millisecond, 24*time.Hour, false),
			&cli.StringFlag{Name: "worker", Usage: "the `NAME` in the history", DefaultText: "host-pid"},
			&cli.StringFlag{Name: "version", Usage: "take jobs of version `V`, and those without one"},
			cli.ListFlag("capability", "take jobs that require `LABEL` too; may be repeated"),
		}, append(jobcmd.Flags(), cli.RemoteFlags()...)...),
		Examples: []cli.Example{
			{"jobledger work -q mail -- ./send.sh", "one job at a time, until interrupted"},
			{"jobledger work -q mail -q sms -j 8 --lease 5m -- ./send.sh --fast", "eight at a time, from two queues"},
			{"jobledger work -q mail --drain -- ./send.sh", "what is ready now, then end (for cron)"},
			{"jobledger work -q mail --until-done -- ./send.sh && echo done", "all of it, retries included"},
			{"jobledger work -q mail --url https://jobs.example.com --api-token-file token -- ./send.sh",
				"for a ledger on another host"},
			{"jobledger work -q nightly --commands", "what the jobs of nightly carry, from this user's own ledger"},
			{"jobledger work -q mail --exit-code 3=release --exit-code 4=fail-no-retry -- ./send.sh",
				"exit code 3 means later, 4 means never again"},
			{"jobledger work -q mail --env SMTP_URL -- ./send.sh",
				"the command sees SMTP_URL, but no other secret of this environment"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitDiscrepancy, cli.ExitNotSucceeded, cli.ExitBusy, cli.ExitTimedOut,
			cli.ExitCannotRun, cli.ExitNotFound},
		Run: func(c *cli.Context) error {
			if len(c.StringSlice("queue")) == 0 {
				return cli.Usagef("work needs a queue: -q QUEUE")
			}
			ends := 0
			for _, name := range []string{"once", "drain", "until-done", "max-jobs"} {
				if c.IsSet(name) && (name == "max-jobs" || c.Bool(name)) {
					ends++
				}
			}
			switch {
			case ends > 1:
				return cli.Usagef("--once, --drain, --until-done and --max-jobs cannot be combined")
			case c.IsSet("commands-from") && !c.Bool("commands"):
				return cli.Usagef("--commands-from goes with --commands")
			case c.IsSet("timeout") && !c.Bool("until-done"):
				return cli.Usagef("--timeout is for --until-done; --max-runtime limits each command")
			}
			command, err := jobcmd.FromLine(p.Program, c)
			if err != nil {
				return err
			}
			command.Prefix = c.Int("jobs") > 1
			return p.work(c, command)
		},
	}
}

func (p *Verbs) work(c *cli.Context, command *worker.Command) error {
	notify := notifier(func(err error) { p.Message("NOTIFY_SOCKET: %v", err) })
	request := commands.ClaimRequest{Queues: c.StringSlice("queue"), Version: c.String("version"),
		Capabilities: c.StringSlice("capability"),
		Worker:       cli.ThisWorker(c.String("worker"), c.String("version"))}
	err := cmp.Or(request.Check(), commands.ReservedLabel("capability", request.Capabilities))
	if err != nil { // before a ledger is made, or anything claimed
		return err
	}
	if err := command.Check(); err != nil {
		return jobcmd.Error(err)
	}
	client, err := p.Remote(c)
	if err != nil {
		return err
	}
	if client != nil {
		defer client.Close()
		if command.Carried {
			return cli.Usagef("--commands and --url cannot be combined: a server gives no commands")
		}
		if err := p.CheckRemote(c); err != nil {
			return err
		}
		if c.Bool("until-done") {
			return cli.Usagef("--until-done and --url cannot be combined; --drain works with a server too")
		}
		command.DB, command.Also = p.RemoteEnvironment(c)
		command.Logs = p.RemoteLogFolder(command.DB)
		defer jobcmd.PassOutputOn(p.Program, command)()
		w := p.newWorker(c, command, request)
		w.Backend = client
		return p.runWorker(c, w, notify, nil)
	}
	service, err := p.openWaiting(c)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	if command.Carried {
		if command.May, err = jobcmd.Rights(c.Context, service, c.String("commands-from")); err != nil {
			return err
		}
	}
	command.Logs = p.LogFolder(service)
	defer jobcmd.PassOutputOn(p.Program, command)()
	unused, err := find.UnusedQueues(c.Context, service.Store, request.Queues)
	if err != nil {
		return err
	}
	for _, queue := range unused { // a worker of a misspelt one would wait for ever
		p.Message("%s", queue)
	}
	w := p.newWorker(c, command, request)
	w.Service = service
	w.Also = archived.Keeper(service, "sweeper:"+request.Worker.Name).Step
	if command.Carried {
		archive := w.Also
		w.Also = func(ctx context.Context) error {
			if command.May() != nil { // the end of the run says why
				w.Stop()
			}
			return archive(ctx)
		}
	}
	guard := witnessGuard(p, service.Store)
	return p.runWorker(c, w, notify, guard)
}

// openWaiting opens the ledger. A worker that runs without a limit waits at its start for a ledger that is
// away, busy or on a full disk, as it does later: services may start in any order.
func (p *Verbs) openWaiting(c *cli.Context) (*commands.Service, error) {
	outage := &await.Outage{Say: p.Message}
	p.Stays = true
	for {
		service, err := p.OpenOrCreate(c.Context)
		if err == nil {
			outage.Over()
			return service, nil
		}
		code, _, _ := fault.Explain(err)
		hasEnd := c.Bool("once") || c.Bool("drain") || c.Bool("until-done") || c.IsSet("max-jobs")
		if code != cli.ExitBusy || hasEnd {
			return nil, err
		}
		if err := outage.Pause(c.Context, err); err != nil {
			return nil, err
		}
	}
}

// sayWhatIsLeft says which jobs of its queues have not ended, a line for each queue that has some.
func (p *Verbs) sayWhatIsLeft(ctx context.Context, w *worker.Worker) error {
	all, err := whatIsLeft(ctx, w.Service, w.Queues, p.Now())
	for _, l := range all {
		if p.JSON {
			l.log(w.Log)
		} else {
			p.Message("%s", l.text(p.Now().Location()))
		}
	}
	return err
}

// newWorker is the worker that the flags describe, without a ledger.
func (p *Verbs) newWorker(c *cli.Context, command *worker.Command,
	request commands.ClaimRequest) *worker.Worker {
	w := &worker.Worker{Command: command, Process: request.Worker,
		Queues: request.Queues, Capabilities: request.Capabilities, Slots: c.Int("jobs"),
		MaxJobs: c.Int("max-jobs"), Drain: c.Bool("drain") || c.Bool("once"),
		Log: slog.New(jobcmd.LogHandler(p.Program, slog.LevelInfo))}
	if c.Bool("once") {
		w.MaxJobs = 1
	}
	w.Lease, _ = cli.DurationValue(c, "lease")
	w.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	return w
}

// runWorker runs w until it ends or is stopped. guard compares the ledger with what this host saw of it; nil:
// the ledger is a server's.
func (p *Verbs) runWorker(c *cli.Context, w *worker.Worker, notify func(string), guard *witness.Guard) error {
	if guard != nil {
		if err := guard.Begin(c.Context); err != nil { // nothing is claimed
			return witnessError(p, err)
		}
	}
	ctx, cancel := context.WithCancel(c.Context)
	within, _ := cli.DurationValue(c, "grace-period")
	defer jobcmd.StopOnSignals(p.Program, w, cancel, within, notify)()
	var reaper sync.WaitGroup
	if os.Getpid() == 1 { // of a container
		reaper.Go(func() { child.ReapOrphans(ctx, time.Second) })
	}
	defer func() {
		cancel()
		reaper.Wait()
	}()
	w.Hooks.Alive = watchdog(notify)
	notify("READY=1")
	defer notify("STOPPING=1")
	witnessed := func() error { return nil }
	if guard != nil {
		witnessed = guard.Watch(c.Context, w.Stop)
	}
	if idle, _ := cli.DurationValue(c, "idle-exit"); idle > 0 {
		defer endIdle(w, idle)()
	}
	var done *doneWatch
	if c.Bool("until-done") {
		done = p.watchDone(c, w, cancel)
		defer done.over()
	}
	stats, err := w.Run(ctx)
	if alarm := witnessed(); alarm != nil {
		p.PrintError(jobcmd.Error(err))
		return witnessError(p, alarm)
	}
	if w.Command.Carried && w.Command.May != nil {
		if why := w.Command.May(); why != nil {
			return why
		}
	}
	if err != nil && !errors.Is(err, worker.ErrStopped) { // by a signal before it began
		return jobcmd.Error(err)
	}
	if c.Bool("once") && stats.Claimed == 0 {
		return cli.Exitf(cli.ExitNothing, "no job is ready in %s", strings.Join(w.Queues, ", "))
	}
	cancelled := ""
	if stats.Cancelled > 0 {
		cancelled = fmt.Sprintf(", %d cancelled", stats.Cancelled)
	}
	if c.Bool("drain") && w.Service != nil {
		if err := p.sayWhatIsLeft(c.Context, w); err != nil {
			return err
		}
	}
	p.Message("worker %s ended: %d claimed, %d succeeded, %d failed, %d released, %d lost%s", w.Process.Name,
		stats.Claimed, stats.Succeeded, stats.Failed, stats.Released, stats.Lost, cancelled)
	if done != nil {
		return done.end(c.Context, p, w)
	}
	return nil
}

// endIdle stops w when it has had no job for so long. It returns what undoes that.
func endIdle(w *worker.Worker, idle time.Duration) func() {
	var mu sync.Mutex
	timer, running := time.AfterFunc(idle, w.Stop), 0
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		if running += by; running > 0 {
			timer.Stop()
		} else {
			timer.Reset(idle)
		}
	}
	started, ended := w.Hooks.Started, w.Hooks.Ended
	w.Hooks.Started = func(j projection.Job, waited time.Duration) {
		count(1)
		if started != nil {
			started(j, waited)
		}
	}
	w.Hooks.Ended = func(j projection.Job, how worker.Ending, took time.Duration) {
		count(-1)
		if ended != nil {
			ended(j, how, took)
		}
	}
	return func() { timer.Stop() }
}
