package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/demo"
	"jobledger/ledger"
)

// demoVerb shows on real files that jobs survive a killed worker.
func demoVerb(p *program) verb {
	return verb{
		name: "demo", group: groupSetUp, usage: "watch jobs survive a killed worker, on real files",
		about: "Makes a ledger with one job per file of a folder (at most 200, nothing of .git) and starts two worker processes " +
			"that compute SHA-256 sums. It kills one of them with SIGKILL while that holds a job, waits until every job is done, " +
			"checks the sums, and shows which workers owned the job that was lost. It takes about 6 seconds.\n" +
			"With --db it may be a ledger in PostgreSQL, in a schema or a database that has none yet.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "folder", Usage: "the files of `DIR`", Value: "."},
			&cli.BoolFlag{Name: "force", Usage: "overwrite the ledger of an earlier demo, if it is a file"},
		},
		examples: []example{
			{"jobledger demo", "on the files of this folder; the ledger is demo.db"},
			{"jobledger demo --folder /etc --force", "on other files, over the last demo's ledger"},
			{"jobledger demo --db 'postgres://app@db.example/jobs?schema=demo'", "on PostgreSQL; DROP SCHEMA demo CASCADE removes it"},
		},
		exits: []int{exitNothing, exitConflict, exitDiscrepancy, exitTimedOut},
		run: func(c *cli.Context) error {
			if !c.IsSet("db") {
				p.db = "demo.db"
			}
			return p.demo(c.Context, c.String("folder"), c.Bool("force"))
		},
	}
}

func (p *program) demo(ctx context.Context, folder string, force bool) error {
	out := flushed{p}
	done, err := demo.Run(ctx, demo.Options{DB: p.db, ShownDB: shown(p.db), Folder: folder, Force: force, Actor: p.actor, Out: out})
	if err != nil {
		return p.demoError(err)
	}
	fmt.Fprintf(out, "all %d jobs succeeded, and every sum is right; here is the job that changed workers:\n\n", done.Jobs)
	if err := p.runOnDemo(ctx, "history", string(done.Victim)); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := p.runOnDemo(ctx, "verify"); err != nil {
		return err
	}
	fmt.Fprintf(out, "\ntry next:\n  jobledger%[1]s history %[2]s\n  jobledger%[1]s events --worker doomed\n"+
		"  jobledger%[1]s list --limit 10\n", p.dbWords(), done.Victim)
	return nil
}

// demoError adds exit codes and hints to the errors of demo.Run.
func (p *program) demoError(err error) error {
	switch {
	case errors.Is(err, demo.ErrExists) && ledger.IsServerAddress(p.db):
		return withHint(exitf(exitConflict, "%w", err), "%s", p.newLedger())
	case errors.Is(err, demo.ErrExists):
		return withHint(exitf(exitConflict, "%w", err), "--force overwrites it")
	case errors.Is(err, demo.ErrNoFiles):
		return exitf(exitNothing, "%w", err)
	case errors.Is(err, demo.ErrWrongSum):
		return exitf(exitDiscrepancy, "%w", err)
	case errors.Is(err, demo.ErrTimeout):
		return exitf(exitTimedOut, "%w", err)
	}
	return noFolder(p.db, err)
}

// runOnDemo runs another command on the ledger of the demo, as the user would.
func (p *program) runOnDemo(ctx context.Context, words ...string) error {
	defer func(json bool) { p.json = json }(p.json)
	return p.dispatch(ctx, append([]string{"--db", p.db}, words...), p.verbs())
}

// flushed writes to stdout without delay, for a command whose user watches.
type flushed struct{ p *program }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.p.stdout.Write(b)
	if err == nil {
		err = f.p.flush()
	}
	return n, err
}
