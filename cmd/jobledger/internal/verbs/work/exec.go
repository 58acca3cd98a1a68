package work

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/projection"
)

func (p *Verbs) Exec() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "exec", Group: cli.GroupPrimitives, Usage: "run a command for a claimed job, and record how it ends",
		About: "For a job that 'jobledger claim' gave: sends heartbeats, gives the payload to the command on " +
			"its standard input, kills it when the lease is lost or the job cancelled, and records the end, all as " +
			"'jobledger work' does, with the same meaning of " +
			"exit codes and the same environment. A claim that is not live any more runs nothing.\n" +
			jobverb.AboutOwner +
			"\n" +
			"Its own exit code: 0 when the job has succeeded, 9 when it has not and that is recorded (failed, to " +
			"be retried or not, or given back), 4 or 5 when another worker has it now or cancelled, 126 or 127 " +
			"when the command cannot be run and the job was given back. INT, TERM or HUP ends the command and " +
			"gives the job back; then exec ends by that signal.",
		Args: "[JOB]", MaxArgs: 1,
		Rest:    "CMD ARGS…",
		Renamed: map[string]string{"map": "exit-code"},
		Flags: append(jobverb.OwnerFlags(
			cli.DurationFlag("lease", "hold for `D` without a heartbeat; by default as long as the last time", "",
				commands.MinLease, commands.MaxLease, false),
		), jobcmd.Flags()...),
		Examples: []cli.Example{
			{`eval "$(jobledger claim -q mail --sh)" && jobledger exec -- ./send.sh`,
				"the next job, with all that is needed from the environment"},
			{"jobledger exec 01JB2Q… --token 01JB2R… -- ./send.sh --fast",
				"a job that was claimed in some other way"},
		},
		Exits: append([]int{cli.ExitNotSucceeded, cli.ExitCannotRun, cli.ExitNotFound}, jobverb.OwnerExits...),
		Run:   p.exec,
	})
}

func (p *Verbs) exec(c *cli.Context) error {
	ref, token, owner, err := jobverb.ClaimOf(c)
	if err != nil {
		return err
	}
	command, err := jobcmd.FromLine(p.Program, c)
	if err != nil {
		return err
	}
	client, err := p.Remote(c)
	if err != nil {
		return err
	}
	var service *commands.Service
	var j projection.Job
	var asked time.Time
	if client != nil {
		defer client.Close()
		if j, asked, err = p.takeOverRemote(c, client, ref, token, owner); err != nil {
			return err
		}
		command.DB, command.Also = p.RemoteEnvironment(c)
		command.Logs = p.RemoteLogFolder(command.DB)
	} else {
		if service, err = p.Open(c.Context); err != nil {
			return err
		}
		defer service.Store.Close()
		if j, asked, err = p.takeOver(c, service, ref, token, owner); err != nil {
			return err
		}
		command.Logs = p.LogFolder(service)
	}
	finish := sync.OnceFunc(jobcmd.PassOutputOn(p.Program, command))
	defer finish()
	w := &worker.Worker{Service: service, Command: command, Process: j.Worker, Lease: leaseFor(c, j),
		Log: slog.New(jobcmd.LogHandler(p.Program, slog.LevelError))}
	if client != nil {
		w.Backend = client
	}
	ctx, signalled := jobcmd.Stoppable(c.Context)
	after, how, why, err := w.Finish(ctx, j, asked)
	caught := signalled()
	finish() // DieOf does not return
	switch {
	case err != nil:
		return jobcmd.Error(err)
	case caught != nil:
		p.Message("%v: %s", caught, print.JobState(after, p.Now()))
		return jobcmd.DieOf(p.Program, caught)
	case how == worker.Succeeded:
		return nil
	case errors.Is(why, worker.ErrNotRenewed):
		return cli.Exitf(cli.ExitLeaseLost, "job %s: %w; nothing was recorded", j.ID, why)
	case (how == worker.Lost || how == worker.Cancelled) && why != nil:
		return why
	case how == worker.Failed:
		exits := map[int64]projection.Exit{}
		if service == nil { // the server would have to be asked for more
			return cli.Exitf(cli.ExitNotSucceeded, "failed (%s): %s", after.ErrorCode, print.JobState(after, p.Now()))
		}
		if err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
			exits, err = projection.LastExits(c.Context, tx, []projection.Job{after}, 0)
			return err
		}); err != nil {
			return err
		}
		return cli.Exitf(cli.ExitNotSucceeded, "failed (%s): %s", words.FailureText(after.ErrorCode,
			exits[after.N]), print.JobState(after, p.Now()))
	}
	return cli.Exitf(cli.ExitNotSucceeded, "%s: %s", how, print.JobState(after, p.Now()))
}

// takeOver makes this process the one that holds the claim, which must be live, and returns the job with
// its payload. The lease counts from asked.
func (p *Verbs) takeOver(c *cli.Context, service *commands.Service, ref find.Ref, token,
	owner string) (j projection.Job, asked time.Time, err error) {
	if j, err = ref.Read(c.Context, service); err != nil {
		return j, asked, err
	}
	actor := p.Actor
	if owner != "" {
		actor = p.ActorAs("worker:" + owner)
	}
	asked = time.Now()
	if j, err = service.Apply(c.Context, actor, j.ID, commands.TakeOver{Token: token, Owner: owner,
		Process: cli.ThisWorker(j.Worker.Name, j.Worker.Version), Lease: leaseFor(c, j)}); err != nil {
		return j, asked, err
	}
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		return projection.LoadBodies(c.Context, tx,
			&j)
	})
	return j, asked, err
}

// takeOverRemote is takeOver for the ledger of a server.
func (p *Verbs) takeOverRemote(c *cli.Context, client *remote.Client, ref find.Ref, token, owner string) (
	j projection.Job, asked time.Time, err error) {
	id, err := jobverb.RemoteID(p.Program, c, ref)
	if err != nil {
		return j, asked, err
	}
	lease, _ := cli.DurationValue(c, "lease")
	process := cli.ThisWorker("", "")
	process.Name = owner // "": the server fills in who holds the claim
	asked = time.Now()
	j, err = client.Apply(c.Context, "", id, commands.TakeOver{Token: token, Owner: owner, Process: process,
		Lease: lease})
	return j, asked, err
}
