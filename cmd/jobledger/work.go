package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/outlet"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/commands/worker/child"
	"jobledger/ledger/failpoint"
)

func workVerb(p *program) cli.Verb {
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
			"--grace-period, ends them and gives their jobs back, which is no failure.",
		Rest:    "CMD ARGS…",
		Renamed: map[string]string{"map": "exit-code", "finish-within": "grace-period"},
		Flags: append([]cli.Flag{
			cli.ListFlag("queue", "claim from `QUEUE`; may be repeated", "q"),
			cli.WholeFlag("jobs", "run `N` commands at a time", 1, 1, 1000, "", "j"),
			&cli.BoolFlag{Name: "once", Usage: "take one job and end; 3 if none is ready"},
			&cli.BoolFlag{Name: "drain", Usage: "end when nothing is ready and all of its own jobs have ended"},
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
		}, commandFlags()...),
		Examples: []cli.Example{
			{"jobledger work -q mail -- ./send.sh", "one job at a time, until interrupted"},
			{"jobledger work -q mail -q sms -j 8 --lease 5m -- ./send.sh --fast", "eight at a time, from two queues"},
			{"jobledger work -q mail --drain -- ./send.sh", "what is ready now, then end (for cron)"},
			{"jobledger work -q mail --exit-code 3=release --exit-code 4=fail-no-retry -- ./send.sh",
				"exit code 3 means later, 4 means never again"},
			{"jobledger work -q mail --env SMTP_URL -- ./send.sh",
				"the command sees SMTP_URL, but no other secret of this environment"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitBusy, cli.ExitCannotRun, cli.ExitNotFound},
		Run: func(c *cli.Context) error {
			if len(c.StringSlice("queue")) == 0 {
				return cli.Usagef("work needs a queue: -q QUEUE")
			}
			if c.Bool("once") && (c.Bool("drain") || c.IsSet("max-jobs")) || c.Bool("drain") && c.IsSet("max-jobs") {
				return cli.Usagef("--once, --drain and --max-jobs exclude each other")
			}
			command, err := p.commandOf(c)
			if err != nil {
				return err
			}
			command.Prefix = c.Int("jobs") > 1
			return p.work(c, command)
		},
	}
}

// commandFlags say how a worker's command is run, and what its end means.
func commandFlags() []cli.Flag {
	return []cli.Flag{
		cli.DurationFlag("kill-after", "KILL comes `D` after TERM", "10s", time.Millisecond, time.Hour, false),
		cli.ListFlag("exit-code", "give an exit code another meaning, `CODE=OUTCOME`; may be repeated"),
		cli.ListFlag("env", "pass only `NAME` of this environment to the command, and PATH, HOME and the like; "+
			"may be repeated"),
		&cli.BoolFlag{Name: "no-capture", Usage: "keep nothing of the output but its size",
			DisableDefaultText: true},
		&cli.StringFlag{Name: "capture", Value: captureAll, Hidden: true}, // the former --no-capture: all or none
		&cli.StringFlag{Name: "result", Usage: "`WHAT` is the job's result: stdout or none", Value: resultStdout},
		cli.WholeFlag("log-limit", "keep `N` bytes of each stream of an attempt", 1<<20, 1<<10, 1<<30, ""),
	}
}

// commandOf returns the command after "--", configured by the commandFlags.
func (p *program) commandOf(c *cli.Context) (*worker.Command, error) {
	if err := checkOutputFlags(c); err != nil {
		return nil, err
	}
	exits, err := exitMap(c.StringSlice("exit-code"))
	if err != nil {
		return nil, err
	}
	command := &worker.Command{Path: p.Rest[0], Args: p.Rest[1:], DB: cli.AbsoluteDSN(p.DB),
		Supervisor: worker.SelfSupervisor(),
		Map:        exits, Stdout: os.Stdout, Stderr: os.Stderr, ResultLimit: resultLimit,
		NoResult: c.String("result") == resultNone, Private: noCapture(c), LogLimit: int64(c.Int("log-limit"))}
	command.KillAfter, _ = cli.DurationValue(c, "kill-after")
	command.EnvOnly, err = p.envNames(c.StringSlice("env"))
	return command, err
}

// envNames are the variables that --env lets through; nil without it, which lets all through.
func (p *program) envNames(names []string) ([]string, error) {
	for _, name := range names {
		if err := worker.CheckEnvName(name); err != nil {
			return nil, cli.WithHint(cli.Usagef("--env: %w", err),
				"a name such as SMTP_URL; its value comes from this environment")
		}
		if _, set := os.LookupEnv(name); !set {
			p.Message("--env %s: it is not set here, so the command does not have it", name)
		}
	}
	return names, nil
}

// resultLimit is how much of a command's standard output becomes the job's result.
const resultLimit = 64 << 10

const (
	captureAll, captureNone  = "all", "none"
	resultStdout, resultNone = "stdout", "none"
)

func checkOutputFlags(c *cli.Context) error {
	capture, result := c.String("capture"), c.String("result")
	switch {
	case capture != captureAll && capture != captureNone:
		return cli.Usagef("--capture: %q is neither %s nor %s", capture, captureAll, captureNone)
	case result != resultStdout && result != resultNone:
		return cli.Usagef("--result: %q is neither %s nor %s", result, resultStdout, resultNone)
	case noCapture(c) && c.IsSet("result") && result == resultStdout:
		return cli.Usagef("--no-capture and --result stdout exclude each other")
	}
	return nil
}

func noCapture(c *cli.Context) bool {
	return c.Bool("no-capture") || c.String("capture") == captureNone
}

// exitMap reads --exit-code.
func exitMap(pairs []string) (map[int]worker.Outcome, error) {
	exits := make(map[int]worker.Outcome)
	for _, pair := range pairs {
		text, outcome, _ := strings.Cut(pair, "=")
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil || !slices.Contains(worker.Outcomes(), worker.Outcome(outcome)) {
			var words []string
			for _, o := range worker.Outcomes() {
				words = append(words, string(o))
			}
			return nil, cli.WithHint(cli.Usagef("--exit-code: %q is not CODE=OUTCOME", pair),
				"a code is a number from 0 to 255, an outcome one of %s", strings.Join(words, ", "))
		}
		if _, twice := exits[int(code)]; twice {
			return nil, cli.Usagef("--exit-code: %d is given twice", code)
		}
		exits[int(code)] = worker.Outcome(outcome)
	}
	return exits, nil
}

func (p *program) work(c *cli.Context, command *worker.Command) error {
	notify := p.SystemdNotifier()
	request := commands.ClaimRequest{Queues: c.StringSlice("queue"), Version: c.String("version"),
		Capabilities: c.StringSlice("capability"),
		Worker:       cli.ThisWorker(c.String("worker"), c.String("version"))}
	if err := request.Check(); err != nil { // before a ledger is made, or anything claimed
		return err
	}
	if err := command.Check(); err != nil {
		return commandError(err)
	}
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	command.Logs = p.LogFolder(service)
	defer p.passOutputOn(command)()
	unused, err := jobref.UnusedQueues(c.Context, service.Store, request.Queues)
	if err != nil {
		return err
	}
	for _, queue := range unused { // a worker of a misspelt one would wait for ever
		p.Message("%s", queue)
	}
	w := &worker.Worker{Service: service, Command: command, Process: request.Worker,
		Queues: request.Queues, Capabilities: request.Capabilities, Slots: c.Int("jobs"),
		MaxJobs: c.Int("max-jobs"), Drain: c.Bool("drain") || c.Bool("once"),
		Log: slog.New(p.logHandler(slog.LevelInfo))}
	if c.Bool("once") {
		w.MaxJobs = 1
	}
	w.Lease, _ = cli.DurationValue(c, "lease")
	w.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")

	ctx, cancel := context.WithCancel(c.Context)
	within, _ := cli.DurationValue(c, "grace-period")
	defer p.stopOnSignals(w, cancel, within, notify)()
	var reaper sync.WaitGroup
	if os.Getpid() == 1 { // of a container
		reaper.Go(func() { child.ReapOrphans(ctx, time.Second) })
	}
	defer func() {
		cancel()
		reaper.Wait()
	}()
	notify("READY=1")
	defer notify("STOPPING=1")
	stats, err := w.Run(ctx)
	if err != nil {
		return commandError(err)
	}
	if c.Bool("once") && stats.Claimed == 0 {
		return cli.Exitf(cli.ExitNothing, "no job is ready in %s", strings.Join(w.Queues, ", "))
	}
	cancelled := ""
	if stats.Cancelled > 0 {
		cancelled = fmt.Sprintf(", %d cancelled", stats.Cancelled)
	}
	p.Message("worker %s ended: %d claimed, %d succeeded, %d failed, %d released, %d lost%s", w.Process.Name,
		stats.Claimed, stats.Succeeded, stats.Failed, stats.Released, stats.Lost, cancelled)
	return nil
}

// passOutputOn makes sure that neither the worker nor its jobs wait for ever for a reader of what they
// say. The caller calls finish at the end, after which messages go where they went before, if anybody reads
// there.
func (p *program) passOutputOn(command *worker.Command) (finish func()) {
	stderr := p.Stderr
	out, messages := outlet.New(command.Stdout, cli.ProgramName), outlet.New(stderr, cli.ProgramName)
	command.Stdout, command.Stderr, p.Stderr = out, messages, messages.Messages()
	return func() {
		const most = 2 * time.Second
		out.Finish(most)
		if p.Stderr = stderr; !messages.Finish(most) {
			p.Stderr = io.Discard
		}
	}
}

// commandError gives a command that cannot be run the exit code that a shell would.
func commandError(err error) error {
	if e, ok := errors.AsType[*worker.StartError](err); ok {
		return cli.WithHint(cli.Exitf(e.Code, "%w", e), "no job was harmed: what was claimed has been given back")
	}
	return err
}

// stopOnSignals makes the first signal stop w gently and the second at once, or the time within which to
// finish (0: no end). It returns what undoes that. The signals stay caught until the process ends: who sends
// two does not know when the worker has finished, and a late one must not make a death of an orderly end.
func (p *program) stopOnSignals(w *worker.Worker, cancel func(), within time.Duration,
	notify func(string)) func() {
	signals := endingSignals(4)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var first os.Signal
		select {
		case first = <-signals:
		case <-over:
			return
		}
		notify("STOPPING=1")
		w.Stop() // so that it holds when it is said
		p.Message("%v: no more jobs are claimed; those under way may finish (a second signal gives them back)",
			first)
		var late <-chan time.Time
		if within > 0 {
			late = time.After(within)
		}
		why := ""
		select {
		case second := <-signals:
			why = second.String()
		case <-late:
			why = fmt.Sprintf("not done within %s", within)
		case <-over:
			return
		}
		p.Message("%s: ending the jobs under way and giving them back", why)
		cancel()
	}()
	return func() {
		close(over)
		<-ended // or what it says may be lost
		failpoint.Hit("over")
	}
}

// endingSignals catches the signals that ask a process to end, but not those that are ignored, as under
// nohup.
func endingSignals(room int) chan os.Signal {
	signals := make(chan os.Signal, room)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}
