package jobverb

import (
	"os"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// OwnerFlags are what the owner of a claim shows, and more. For these verbs alone the environment says which
// claim is meant, as it does within a worker's command.
func OwnerFlags(more ...cli.Flag) []cli.Flag {
	return append(append([]cli.Flag{
		&cli.StringFlag{Name: "token", Usage: "the lease `TOKEN` of the claim", Required: true,
			EnvVars: []string{"JOBLEDGER_TOKEN"}},
		&cli.StringFlag{Name: "worker", Usage: "the `NAME` that claimed the job; if it is another, nothing is done",
			EnvVars: []string{"JOBLEDGER_WORKER"}},
	}, more...), cli.RemoteFlags()...)
}

// AboutOwner is the paragraph about the claim in the help of its owner's verbs.
const AboutOwner = "JOB is the job's id or the beginning of it; without JOB, the environment variable " +
	"JOBLEDGER_JOB says which. Within a command of 'jobledger work', job, token and worker are all set." +
	cli.AboutRemote

// AboutEnding is [AboutOwner] for the verbs that end the claim.
const AboutEnding = AboutOwner + " Sent twice it is done once, and the second time gets the same answer."

// OwnerExits are the exit codes of the verbs of a claim's owner.
var OwnerExits = []int{cli.ExitLeaseLost, cli.ExitCancelled, cli.ExitConflict, cli.ExitNoJob, cli.ExitBusy}

// AsOwner asks for what ask makes of the job and its credentials, on behalf of the claim's owner, and prints
// what became of the job.
func AsOwner(p *cli.Program, c *cli.Context,
	ask func(j projection.Job, token, owner string) commands.Command) error {
	ref, token, owner, err := ClaimOf(c)
	if err != nil {
		return err
	}
	client, err := p.Remote(c)
	if err != nil {
		return err
	}
	if client != nil {
		defer client.Close()
		return asRemoteOwner(p, c, client, ref, token, owner, ask)
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
		actor = p.ActorAs("worker:" + owner)
	}
	if j, err = service.Apply(c.Context, actor, j.ID, ask(j, token, owner)); err != nil {
		return err
	}
	return printAfter(p, j)
}

// asRemoteOwner is AsOwner for the ledger of a server.
func asRemoteOwner(p *cli.Program, c *cli.Context, client *remote.Client, ref find.Ref, token, owner string,
	ask func(j projection.Job, token, owner string) commands.Command) error {
	id, err := RemoteID(p, c, ref)
	if err != nil {
		return err
	}
	command := ask(projection.Job{ID: id}, token, owner)
	if h, ok := command.(commands.Heartbeat); ok && !c.IsSet("lease") {
		h.Lease = 0 // the server knows how long it was the last time
		command = h
	}
	j, err := client.Apply(c.Context, "", id, command)
	if err != nil {
		return err
	}
	return printAfter(p, j)
}

// RemoteID is the id of the job that the line names, which a server takes whole only.
func RemoteID(p *cli.Program, c *cli.Context, ref find.Ref) (event.JobID, error) {
	if err := p.CheckRemote(c); err != nil {
		return "", err
	}
	id, err := ulid.ParseStrict(ref.ID)
	if err != nil {
		return "", cli.Usagef("with --url a job is named by its whole id")
	}
	return event.JobID(id.String()), nil
}

func printAfter(p *cli.Program, j projection.Job) error {
	if p.JSON {
		return p.PrintJSON(words.ToJSON(j))
	}
	if p.StderrTerminal { // a script knows by the exit code
		p.Message("%s", print.JobState(j, p.Now()))
	}
	return nil
}

// ClaimOf says which claim is meant: its job, its token, and its worker if that was given.
func ClaimOf(c *cli.Context) (ref find.Ref, token, owner string, err error) {
	ref, ok, err := RefOf(c)
	if err != nil {
		return ref, "", "", err
	}
	if !ok {
		ref.ID = os.Getenv("JOBLEDGER_JOB")
	}
	token, owner = c.String("token"), c.String("worker")
	switch {
	case !ok && ref.ID == "":
		err = cli.WithHint(cli.Usagef("missing JOB"), "%s", find.Forms)
	case token == "":
		err = cli.Usagef("--token is empty")
	default:
		err = commands.CheckLabel("token", token)
	}
	return ref, token, owner, err
}
