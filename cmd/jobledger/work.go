package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/commands/worker"
)

func workVerb(p *program) verb {
	return verb{
		name: "work", group: groupWork, usage: "run a command for each job of a queue",
		about: "The command gets the payload on its standard input and the job's id, token and attempt in the environment " +
			"(JOBLEDGER_JOB, JOBLEDGER_TOKEN, …). Exit code 0 is success; what it printed is the result. 75 and 111 mean later, " +
			"100 means never again, everything else is a failure that is retried.\n\n" +
			"The first INT or TERM stops claiming and lets running commands finish; the second ends them and gives their jobs back.",
		rest: "CMD ARGS…",
		flags: []cli.Flag{
			listFlag("queue", "claim from `QUEUE`; may be repeated", "q"),
			wholeFlag("jobs", "run `N` commands at a time", 1, 1, 1000, "", "j"),
			&cli.BoolFlag{Name: "once", Usage: "take one job and end; 3 if none is ready"},
			&cli.BoolFlag{Name: "drain", Usage: "end when nothing is ready and all of its own jobs have ended"},
			wholeFlag("max-jobs", "end after `N` jobs", 0, 1, 1_000_000_000, "no end"),
			durationFlag("lease", "a claim holds for `D` without a heartbeat; heartbeats come every third of it", "1m", commands.MinLease, commands.MaxLease, false),
			durationFlag("max-runtime", "no command runs longer than `D`", "", time.Millisecond, commands.MaxRunTime, false),
			durationFlag("kill-after", "KILL comes `D` after TERM", "10s", time.Millisecond, time.Hour, false),
			&cli.StringFlag{Name: "worker", Usage: "the `NAME` in the history", DefaultText: "host-pid"},
			&cli.StringFlag{Name: "version", Usage: "take jobs of version `V`, and those without one"},
			listFlag("capability", "take jobs that require `LABEL` too; may be repeated"),
		},
		examples: []example{
			{"jobledger work -q mail -- ./send.sh", "one job at a time, until interrupted"},
			{"jobledger work -q mail -q sms -j 8 --lease 5m -- ./send.sh --fast", "eight at a time, from two queues"},
			{"jobledger work -q mail --drain -- ./send.sh", "what is ready now, then end (for cron)"},
		},
		exits: []int{exitNothing, exitBusy, exitCannotRun, exitNotFound},
		run: func(c *cli.Context) error {
			if len(c.StringSlice("queue")) == 0 {
				return usagef("work needs a queue: -q QUEUE")
			}
			if c.Bool("once") && (c.Bool("drain") || c.IsSet("max-jobs")) || c.Bool("drain") && c.IsSet("max-jobs") {
				return usagef("--once, --drain and --max-jobs exclude each other")
			}
			return p.work(c)
		},
	}
}

// resultLimit is how much of a command's standard output becomes the job's result.
const resultLimit = 64 << 10

func (p *program) work(c *cli.Context) error {
	command := &worker.Command{Path: p.rest[0], Args: p.rest[1:], DB: absoluteDB(p.db), Supervisor: worker.SelfSupervisor(),
		Stdout: os.Stdout, Stderr: os.Stderr, Prefix: c.Int("jobs") > 1, ResultLimit: resultLimit}
	command.KillAfter, _ = durationOf(c, "kill-after")
	if err := command.Check(); err != nil { // before a ledger is made, or anything claimed
		return commandError(err)
	}
	service, err := p.openOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	w := &worker.Worker{Service: service, Command: command, Process: self(c.String("worker"), c.String("version")),
		Queues: c.StringSlice("queue"), Capabilities: c.StringSlice("capability"), Slots: c.Int("jobs"),
		MaxJobs: c.Int("max-jobs"), Drain: c.Bool("drain") || c.Bool("once"), Log: slog.New(&lineHandler{p: p, mu: new(sync.Mutex)})}
	if c.Bool("once") {
		w.MaxJobs = 1
	}
	w.Lease, _ = durationOf(c, "lease")
	w.MaxRuntime, _ = durationOf(c, "max-runtime")

	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	defer p.stopOnSignals(w, cancel)()
	stats, err := w.Run(ctx)
	if err != nil {
		return commandError(err)
	}
	if c.Bool("once") && stats.Claimed == 0 {
		return exitf(exitNothing, "no job is ready in %s", strings.Join(w.Queues, ", "))
	}
	p.message("worker %s ended: %d claimed, %d succeeded, %d failed, %d released, %d lost",
		w.Process.Name, stats.Claimed, stats.Succeeded, stats.Failed, stats.Released, stats.Lost)
	return nil
}

// commandError gives a command that cannot be run the exit code that a shell would.
func commandError(err error) error {
	if e, ok := errors.AsType[*worker.StartError](err); ok {
		return withHint(exitf(e.Code, "%w", e), "no job was harmed: what was claimed has been given back")
	}
	return err
}

// stopOnSignals makes the first signal stop w gently and the second at once. It returns what undoes that.
func (p *program) stopOnSignals(w *worker.Worker, cancel func()) func() {
	signals := make(chan os.Signal, 4)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(signals, s)
		}
	}
	go func() {
		for n := 1; ; n++ {
			s, ok := <-signals
			switch {
			case !ok:
				return
			case n == 1:
				p.message("%v: no more jobs are claimed; those under way may finish (a second signal gives them back)", s)
				w.Stop()
			default:
				p.message("%v: ending the jobs under way and giving them back", s)
				cancel()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// lineHandler writes what a worker says as lines for people: the message, then what it is about.
type lineHandler struct {
	p  *program
	mu *sync.Mutex
}

func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if text := a.Value.String(); text != "" {
			fmt.Fprintf(&line, " %s=%s", a.Key, text)
		}
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.p.message("%s", escape(line.String()))
	return nil
}

func (h *lineHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *lineHandler) WithGroup(string) slog.Handler      { return h }
