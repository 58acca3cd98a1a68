package main

import (
	"context"
	"errors"
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/demo"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

// demoVerb shows on real files that jobs survive a killed worker.
func demoVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "demo", Group: cli.GroupSetUp, Usage: "watch jobs survive a killed worker, on real files",
		About: "Makes a ledger with one job per file of a folder (at most 200, nothing of .git) and starts two " +
			"worker processes that compute SHA-256 sums. It kills one of them with SIGKILL while that holds a job, " +
			"waits until every job is done, checks the sums, and shows which workers owned the job that was lost. " +
			"It takes about 6 seconds.\n" +
			"With --db it may be a ledger in PostgreSQL, in a schema or a database that has none yet.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "folder", Usage: "the files of `DIR`; without it, of this one, or small ones that " +
				"are made", Value: "."},
			&cli.BoolFlag{Name: "force", Usage: "overwrite the ledger of an earlier demo, if it is a file"},
		},
		Examples: []cli.Example{
			{"jobledger demo", "on the files of this folder; the ledger is demo.db"},
			{"jobledger demo --folder /etc --force", "on other files, over the last demo's ledger"},
			{"jobledger demo --db 'postgres://app@db.example/jobs?schema=demo'",
				"on PostgreSQL; DROP SCHEMA demo CASCADE removes it"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitTimedOut},
		Run: func(c *cli.Context) error {
			if !c.IsSet("db") {
				p.DB = "demo.db"
			}
			return p.demo(c.Context, demo.Options{Folder: c.String("folder"), Make: !c.IsSet("folder"),
				Force: c.Bool("force")})
		},
	}
}

func (p *program) demo(ctx context.Context, o demo.Options) error {
	out := flushed{p}
	o.DB, o.ShownDB, o.Actor, o.Out = p.DB, cli.DisplayDSN(p.DB), p.Actor, out
	done, err := demo.Run(ctx, o)
	if err != nil {
		return p.demoError(err)
	}
	fmt.Fprintf(out, "all %s succeeded, and every sum is right; here is the job that changed workers:\n\n",
		words.Count(int64(done.Jobs), "job"))
	if err := p.runOnDemo(ctx, "history", string(done.Victim)); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := p.runOnDemo(ctx, "verify"); err != nil {
		return err
	}
	fmt.Fprintf(out, "\ntry next:\n  jobledger%[1]s history %[2]s\n  jobledger%[1]s events --worker doomed\n"+
		"  jobledger%[1]s list --limit 10\n\nand in a browser:\n  jobledger%[1]s serve\n", p.DBFlag(), done.Victim)
	return nil
}

// demoError adds exit codes and hints to the errors of demo.Run.
func (p *program) demoError(err error) error {
	switch {
	case errors.Is(err, demo.ErrExists) && ledger.IsServerAddress(p.DB):
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err), "%s", p.NewLedgerHint())
	case errors.Is(err, demo.ErrExists):
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err), "--force overwrites it")
	case errors.Is(err, demo.ErrNoFiles):
		return cli.Exitf(cli.ExitNothing, "%w", err)
	case errors.Is(err, demo.ErrWrongSum):
		return cli.Exitf(cli.ExitDiscrepancy, "%w", err)
	case errors.Is(err, demo.ErrTimeout):
		return cli.Exitf(cli.ExitTimedOut, "%w", err)
	}
	return cli.WithFolderHint(p.DB, err)
}

// runOnDemo runs another command on the ledger of the demo, as the user would.
func (p *program) runOnDemo(ctx context.Context, words ...string) error {
	defer func(json bool) { p.JSON = json }(p.JSON)
	return p.Dispatch(ctx, append([]string{"--db", p.DB}, words...), p.verbs())
}

// flushed writes to stdout without delay, for a command whose user watches.
type flushed struct{ p *program }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.p.Stdout.Write(b)
	if err == nil {
		err = f.p.Flush()
	}
	return n, err
}
