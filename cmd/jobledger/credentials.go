package main

import (
	"fmt"
	"os"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// ownerFlags are what the owner of a claim shows, and more. For these verbs alone the environment says which
// claim is meant, as it does within a worker's command.
func ownerFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "token", Usage: "the lease `TOKEN` of the claim", Required: true,
			EnvVars: []string{"JOBLEDGER_TOKEN"}},
		&cli.StringFlag{Name: "worker", Usage: "the `NAME` that claimed the job; if it is another, nothing is done",
			EnvVars: []string{"JOBLEDGER_WORKER"}},
	}, more...)
}

const aboutOwner = "JOB is the job's id or the beginning of it; without JOB, the environment variable " +
	"JOBLEDGER_JOB says which. Within a command of 'jobledger work', job, token and worker are all set."

// aboutEnding holds for all but heartbeat.
const aboutEnding = aboutOwner + " Sent twice it is done once, and the second time gets the same answer."

var ownerExits = []int{cli.ExitLeaseLost, cli.ExitCancelled, cli.ExitConflict, cli.ExitNoJob, cli.ExitBusy}

// asOwner asks for what ask makes of the job and its credentials, on behalf of the claim's owner.
func (p *program) asOwner(c *cli.Context,
	ask func(j projection.Job, token, owner string) commands.Command) error {
	ref, token, owner, err := claimOf(c)
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	j, err := ref.Read(c.Context, service)
	if err != nil {
		return err
	}
	actor := p.Actor
	if owner != "" {
		actor = p.actorAs("worker:" + owner)
	}
	if j, err = service.Apply(c.Context, actor, j.ID, ask(j, token, owner)); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(render.ToJSON(j))
	}
	if p.StderrTerminal { // a script knows by the exit code
		p.Message("%s", p.describeState(j))
	}
	return nil
}

// claimOf says which claim is meant: its job, its token, and, where that was given, its worker.
func claimOf(c *cli.Context) (ref jobref.Ref, token, owner string, err error) {
	ref, ok, err := jobref.OneFromLine(c)
	if err != nil {
		return ref, "", "", err
	}
	if !ok {
		ref.ID = os.Getenv("JOBLEDGER_JOB")
	}
	token, owner = c.String("token"), c.String("worker")
	switch {
	case !ok && ref.ID == "":
		err = cli.WithHint(cli.Usagef("missing JOB"), "%s", jobref.Forms)
	case token == "":
		err = cli.Usagef("--token is empty")
	default:
		err = commands.CheckLabel("token", token)
	}
	return ref, token, owner, err
}

// actorAs is who acts: the one that --actor or its variable names, else role.
func (p *program) actorAs(role string) string {
	if p.Actor != p.DefaultActor() {
		return p.Actor
	}
	return role
}

// describeState describes the state of a job in one line.
func (p *program) describeState(j projection.Job) string {
	text := fmt.Sprintf("job %s in %s is %s", j.ID, j.Queue, j.State)
	switch {
	case j.State == event.Queued:
		now := p.Now()
		text += ", to run now"
		if j.RunAt.After(now) {
			text = fmt.Sprintf("job %s in %s is queued, to run at %s (%s)", j.ID, j.Queue,
				render.Time(j.RunAt.In(now.Location())), render.Age(j.RunAt, now))
		}
	case j.State.Held():
		text += fmt.Sprintf(" by %s until %s", j.Worker.Name, render.Time(j.LeaseUntil.In(p.Now().Location())))
	}
	if j.Failures > 0 {
		text += fmt.Sprintf(", failures %d of %d", j.Failures, j.MaxAttempts)
	}
	return text
}
