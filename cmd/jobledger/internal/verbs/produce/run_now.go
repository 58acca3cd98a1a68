package produce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// runNow runs e here, and returns its exit code as an error that is not printed.
func (p *Verbs) runNow(c *cli.Context, service *commands.Service, e commands.Enqueue) error {
	label := event.LabelRun + ulid.Make().String()
	e.Requires = []string{label}
	answers, err := service.Enqueue(c.Context, p.Actor, e)
	if err != nil {
		return ofRun(err)
	}
	j := answers[0].Job
	if answers[0].Existing {
		return ofRun(cli.Exitf(cli.ExitConflict, "job %s has the key %q, and is %s", j.ID, e.Key, j.State))
	}
	request := commands.ClaimRequest{Queues: []string{e.Queue}, Worker: cli.ThisWorker("", ""),
		Capabilities: []string{label, event.LabelArgv}}
	request.Lease, _ = cli.DurationValue(c, "lease")
	ctx, signalled := jobcmd.Stoppable(c.Context)
	var ended error
	for ended == nil && !j.State.Final() && ctx.Err() == nil {
		var claimed []projection.Job
		asked := time.Now()
		claimed, ended = await.Claim(ctx, service, "worker:"+request.Worker.Name, request, time.Hour, time.Now)
		if ended != nil || len(claimed) == 0 {
			continue
		}
		if j = claimed[0]; !bytes.Equal(j.Payload, e.Payload) {
			ended = errors.New("the ledger gave back another command than the one that was put into it: nothing " +
				"was run")
			continue
		}
		j, ended = p.runClaimed(ctx, c, service, j, asked)
	}
	signal := signalled()
	if !j.State.Final() { // the signal, or what went wrong: no process waits for it any more
		reason := "run has ended"
		if signal != nil {
			reason = fmt.Sprintf("run was ended by %v", signal)
		}
		over, cancel := context.WithTimeout(context.WithoutCancel(c.Context), 10*time.Second)
		defer cancel()
		after, err := service.Apply(over, p.Actor, j.ID, commands.Cancel{Reason: reason})
		if j = after; err != nil && ended == nil {
			ended = err
		}
	}
	switch {
	case signal != nil:
		_ = p.sayEnd(c, service, j) // the code is that of the signal
		number, _ := signal.(syscall.Signal)
		return cli.Quietly(128 + int(number))
	case ended != nil:
		return ofRun(ended)
	}
	return p.sayEnd(c, service, j)
}

// runClaimed runs the command of j, which this process has claimed.
func (p *Verbs) runClaimed(ctx context.Context, c *cli.Context, service *commands.Service, j projection.Job,
	asked time.Time) (after projection.Job, err error) {
	command := jobcmd.OfRun(p.Program, service)
	command.KillAfter, _ = cli.DurationValue(c, "kill-after")
	defer jobcmd.PassOutputOn(p.Program, command)()
	w := &worker.Worker{Service: service, Command: command, Process: j.Worker,
		Log: slog.New(jobcmd.LogHandler(p.Program, slog.LevelError))}
	w.Lease, _ = cli.DurationValue(c, "lease")
	after, how, why, err := w.Finish(ctx, j, asked)
	if err == nil && (how == worker.Lost || how == worker.Cancelled) && why != nil {
		err = why
	}
	return after, err
}

// sayEnd says on a terminal how j ended, and returns its exit code.
func (p *Verbs) sayEnd(c *cli.Context, service *commands.Service, j projection.Job) error {
	ctx := context.WithoutCancel(c.Context)
	var exit projection.Exit
	var used string
	err := service.Store.Read(ctx, func(tx *ledger.Tx) error {
		exits, err := projection.LastExits(ctx, tx, []projection.Job{j}, 0)
		if exit = exits[j.N]; err != nil || !p.StderrTerminal {
			return err
		}
		ends := ledger.Filter{Job: j.N, Kinds: []event.Kind{event.KindSucceeded, event.KindFailed}}
		for e, err := range tx.Events(ctx, ends) {
			if err != nil {
				return err
			}
			if cost, _ := event.CostOf(e.Body); cost != (event.Cost{}) {
				used = ", CPU " + words.Roughly(cost.CPU())
			}
		}
		return nil
	})
	if err != nil {
		return ofRun(err)
	}
	if p.StderrTerminal {
		var took time.Duration
		if !j.FinishedAt.IsZero() && !j.ClaimedAt.IsZero() {
			took = j.FinishedAt.Sub(j.ClaimedAt)
		}
		how := j.State.String()
		if j.State == event.FailedState {
			how = "failed: " + words.FailureText(j.ErrorCode, exit)
		}
		p.Message("job %d %s after %s%s", j.N, how, words.Roughly(took), used)
	}
	switch {
	case j.State == event.SucceededState:
		return nil
	case j.State != event.FailedState:
		return cli.Quietly(cli.ExitRunFailed)
	case j.ErrorCode == event.MaxRuntime:
		return cli.Quietly(cli.ExitTimedOut)
	case exit.Code != nil:
		return cli.Quietly(*exit.Code)
	case exit.Signal != "":
		return cli.Quietly(128 + jobcmd.SignalNumber(exit.Signal))
	}
	code := cli.ExitRunFailed
	switch j.ErrorCode {
	case "cannot_run":
		code = cli.ExitCannotRun
	case "not_found":
		code = cli.ExitNotFound
	}
	return cli.Exitf(code, "%s: %s", j.ErrorCode, j.ErrorDetail)
}

// runLater enqueues e for a worker, and starts one where that is wanted and none is there.
func (p *Verbs) runLater(c *cli.Context, service *commands.Service, e commands.Enqueue) error {
	if err := readDependencies(c, service, &e); err != nil {
		return ofRun(err)
	}
	answers, err := service.Enqueue(c.Context, p.Actor, e)
	if err != nil {
		return ofRun(err)
	}
	a := answers[0]
	switch {
	case p.JSON:
		err = p.PrintJSON(words.ToJSON(a.Job))
	case p.StdoutTerminal:
		err = p.PrintLine(strconv.FormatInt(a.N, 10))
	default:
		err = p.PrintLine(string(a.ID))
	}
	if err != nil {
		return ofRun(err)
	}
	var served bool
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		workers, err := status.Workers{At: projection.Now(p.Now())}.Read(c.Context, tx)
		for _, w := range workers {
			fits, _ := projection.Fits(a.Job, w.Version, w.Capabilities)
			present := w.State == status.Working || w.State == status.Idle
			served = served || fits && present && slices.Contains(w.Queues, e.Queue)
		}
		return err
	})
	if err != nil || served {
		return ofRun(err)
	}
	start := c.Bool("start") || p.StderrTerminal && p.StdoutTerminal && os.Getenv("JOBLEDGER_START") != "no"
	by := "jobledger work --commands -q " + e.Queue + p.DBFlag()
	if !start || c.Bool("no-start") {
		p.Message("no worker serves %s: %s", e.Queue, by)
		return nil
	}
	if _, err := jobcmd.Rights(c.Context, service, ""); err != nil {
		_, why, _ := fault.Explain(err)
		p.Message("no worker serves %s, and none was started: %s", e.Queue, why)
		return nil
	}
	pid, err := p.startWorker(e.Queue)
	if err != nil {
		p.Message("no worker serves %s, and none could be started: %v", e.Queue, err)
		return nil
	}
	p.Message("started a worker (pid %d); it ends after a minute without a job", pid)
	return nil
}

// startWorker starts a worker of this user that outlives this process and ends alone.
func (p *Verbs) startWorker(queue string) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// #nosec G204 -- this program
	cmd := exec.Command(self, "work", "--db", cli.AbsoluteDSN(p.DB), "--commands", "-q", queue,
		"--idle-exit", "1m")
	cmd.Dir = "/"
	jobcmd.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}
