package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
	"jobledger/projection/limit"
)

func (p *Verbs) Claim() cli.Verb {
	queues := cli.ListFlag("queue", "claim from `QUEUE`; may be repeated", "q")
	queues.Required = true
	return cli.Verb{
		Name: "claim", Group: cli.GroupPrimitives, Usage: "take the next job, for a worker of your own making",
		About: "Prints each job with its payload and the lease token that every later command on it must show. " +
			"Before the lease ends, send a heartbeat, or end the claim with succeed, fail or release; else a sweep " +
			"gives the job to another worker. Higher priorities come first, then what was due first. For running " +
			"commands, 'jobledger work' does all of this.\n" +
			"When nothing is ready the exit code is 3, even after --wait: there was no job, and to ask again is " +
			"right.\n" +
			"--sh prints the claim as variables for the shell, JOBLEDGER_JOB, JOBLEDGER_TOKEN and the others that " +
			"a worker's command gets, and '(exit N)' when there is none, so that eval passes the exit code on. The " +
			"payload is not a variable: 'jobledger exec' gives it to a command. The worker is then the shell: its " +
			"process, and the same one for all claims of a loop." + cli.AboutRemote,
		Flags: append([]cli.Flag{
			queues,
			&cli.StringFlag{Name: "worker", Usage: "the `NAME` in the history", DefaultText: "host-pid"},
			cli.DurationFlag("lease", "the claim holds for `D` without a heartbeat", "1m", commands.MinLease,
				commands.MaxLease, false),
			cli.WholeFlag("limit", "take up to `N` jobs", 1, 1, 1000, "", "n"),
			&cli.StringFlag{Name: "version", Usage: "take jobs of version `V`, and those without one"},
			cli.ListFlag("capability", "take jobs that require `LABEL` too; may be repeated"),
			cli.DurationFlag("wait", "wait up to `D` for a job to become ready", "", time.Millisecond, 24*time.Hour,
				false),
			&cli.BoolFlag{Name: "sh", Usage: "print the claim as variables for the shell"},
		}, cli.RemoteFlags()...),
		Examples: []cli.Example{
			{`eval "$(jobledger claim -q mail --wait 30s --sh)" && jobledger exec -- ./send.sh`,
				"wait for a job, and run a command for it"},
			{"jobledger claim -q mail --worker w1", "the next job of mail, for a person to read; 3 when none is " +
				"ready"},
			{"jobledger claim -q mail -q sms --limit 10 --lease 5m --json",
				"up to ten, one JSON object a line, with payload and lease_token"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitBusy},
		Run:   p.claim,
	}
}

func (p *Verbs) claim(c *cli.Context) error {
	request := commands.ClaimRequest{Queues: c.StringSlice("queue"), Version: c.String("version"),
		Capabilities: c.StringSlice("capability"),
		Worker:       cli.ThisWorker(c.String("worker"), c.String("version")), Limit: c.Int("limit")}
	if c.Bool("sh") {
		request.Worker = cli.ParentWorker(c.String("worker"), c.String("version"))
	}
	if err := commands.ReservedLabel("capability", request.Capabilities); err != nil {
		return err
	}
	request.Lease, _ = cli.DurationValue(c, "lease")
	wait, _ := cli.DurationValue(c, "wait")
	if c.Bool("sh") && (p.JSON || request.Limit > 1) {
		return cli.Usagef("--sh takes one job, and neither --json nor a --limit")
	}
	client, err := p.Remote(c)
	if err != nil {
		return err
	}
	if client != nil {
		defer client.Close()
		return p.claimRemote(c, client, request, wait)
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	jobs, err := await.Claim(c.Context, service, p.ActorAs("worker:"+request.Worker.Name), request, wait, p.Now)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return p.nothingReady(c.Context, service, request)
	}
	if err := p.printClaims(c, jobs, cli.AbsoluteDSN(p.DB), nil); err != nil {
		return p.giveBack(c.Context, service.Apply, jobs, err)
	}
	return nil
}

// claimRemote claims from the ledger of a server.
func (p *Verbs) claimRemote(c *cli.Context, client *remote.Client, request commands.ClaimRequest,
	wait time.Duration) error {
	if err := p.CheckRemote(c); err != nil {
		return err
	}
	jobs, err := client.ClaimWithin(c.Context, request, wait)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return cli.Exitf(cli.ExitNothing, "nothing is ready in %s", strings.Join(request.Queues, ", "))
	}
	url, also := p.RemoteEnvironment(c)
	if err := p.printClaims(c, jobs, url, also); err != nil {
		return p.giveBack(c.Context, client.Apply, jobs, err)
	}
	return nil
}

// printClaims prints jobs of the ledger db, or of the server with that URL; also are more variables for the
// shell.
func (p *Verbs) printClaims(c *cli.Context, jobs []projection.Job, db string, also []string) error {
	for i, j := range jobs {
		if c.Bool("sh") {
			_ = p.printForShell(j, db, also) // Flush returns the error
		} else if p.JSON {
			_ = p.PrintJSON(words.ToFullJSON(j, true))
		} else {
			if i > 0 {
				_ = p.PrintLine("")
			}
			_ = p.PrintPairs(print.ClaimPairs(j, p.Now().Location())...)
		}
	}
	return p.Flush()
}

// giveBack releases jobs whose tokens were not printed. Otherwise they would be held until their leases end.
func (p *Verbs) giveBack(ctx context.Context,
	apply func(context.Context, string, event.JobID, commands.Command) (projection.Job, error),
	jobs []projection.Job, cause error) error {
	for _, j := range jobs {
		release := commands.Release{Token: j.Token, Reason: "the claim could not be printed"}
		if _, err := apply(ctx, p.ActorAs("worker:"+j.Worker.Name), j.ID, release); err != nil {
			return cli.Exitf(cli.ExitUnexpected, "print the claim of job %s: %w; give it back: %w", j.ID, cause, err)
		}
	}
	return cli.Exitf(cli.ExitUnexpected, "print the claim: %w; what was claimed is given back", cause)
}

// printForShell prints the claim as lines that sh can evaluate.
func (p *Verbs) printForShell(j projection.Job, db string, also []string) error {
	var b strings.Builder
	for _, variable := range append(worker.Environment(db, j), also...) {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return p.PrintRaw([]byte(b.String()))
}

// PrintShellExit prints an exit code as a command for a shell that evaluates the output, and returns
// the code, whatever went wrong: otherwise the shell would go on with the job that it had before.
func PrintShellExit(p *cli.Program, typed []string, code int) int {
	if i := slices.Index(typed, "--"); i >= 0 {
		typed = typed[:i]
	}
	if code != cli.ExitOK && slices.Contains(typed, "claim") && slices.Contains(typed, "--sh") {
		fmt.Fprintf(p.Stdout, "(exit %d)\n", code)
		_ = p.Flush() // its reader is gone, if that fails
	}
	return code
}

// nothingReady says why, as far as that is cheap to know.
func (p *Verbs) nothingReady(ctx context.Context, service *commands.Service,
	r commands.ClaimRequest) error {
	var why []string
	var unknown error // with a hint
	err := service.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(r.Queues))) {
			q, err := projection.GetQueue(ctx, tx, name)
			if err != nil {
				return err
			}
			if q.Paused {
				why = append(why, fmt.Sprintf("%s is paused", name))
			}
			full, err := fullText(ctx, tx, name)
			if err != nil {
				return err
			}
			why = append(why, full...)
			// For a name that the ledger has, it would cost a loop of claims too much to find out whether a job ever
			// had it.
			n, err := tx.Name(ctx, name)
			if err == nil && n == 0 && unknown == nil {
				unknown = find.NeverUsed(ctx, tx, name, errors.New(name))
			}
			if err != nil {
				return err
			}
		}
		next, err := claims.NextRunAt(ctx, tx, claims.Want{Queues: r.Queues, Version: r.Version,
			Capabilities: r.Capabilities})
		if err == nil && next.After(tx.Now()) {
			why = append(why, fmt.Sprintf("the next job is due %s (%s)", words.Time(next.In(p.Now().Location())),
				words.Age(next, tx.Now())))
		}
		return err
	})
	if err != nil {
		return err
	}
	text := "nothing is ready in " + strings.Join(r.Queues, ", ")
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	err = cli.Exitf(cli.ExitNothing, "%s", text)
	if _, _, hint := fault.Explain(unknown); hint != "" {
		err = cli.WithHint(err, "%s", hint)
	}
	return err
}

// fullText says that a queue is at its limit; "" if it is not.
func fullText(ctx context.Context, tx *ledger.Tx, queue string) (why []string, err error) {
	l, err := limit.Of(ctx, tx, queue)
	if err != nil || !l.Active() {
		return nil, err
	}
	live, err := limit.CountLive(ctx, tx, queue)
	if err != nil {
		return nil, err
	}
	if l.Rate.N > 0 && l.NextStart() > event.Micros(tx.Now()) {
		why = append(why, fmt.Sprintf("%s has its rate of %s", queue, words.RateText(l.Rate.N, l.Rate.Per)))
	}
	if !l.Full(live.Total()) {
		return why, nil
	}
	return append(why, fmt.Sprintf("%s is at its limit, %d of %d run", queue, live.Total(), l.Running)), nil
}
