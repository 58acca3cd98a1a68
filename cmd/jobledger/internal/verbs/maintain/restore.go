package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

// Restore replaces the ledger by a backup.
func (p *Verbs) Restore() cli.Verb {
	return cli.Verb{
		Name: "restore", Here: true, Group: cli.GroupLedger, Usage: "put a backup in the place of the ledger",
		About: "FILE is a file that 'jobledger backup' made. It is copied, and the copy is checked as 'jobledger " +
			"verify' does. The copy then takes the ledger's name in one step. The old ledger is kept as " +
			"DB.before-TIME. The last event of the new one records the restore. If the command is interrupted, " +
			"either the old or the new ledger is there, whole.\n" +
			"It is refused while any process has the ledger open: stop the workers first. Unless --force is given, " +
			"it is also refused if workers seem to be alive, if the ledger has events that FILE lacks, or if the " +
			"ledger cannot be read. No queue is paused. Jobs that were queued or held when the backup was made are " +
			"so again, even if they have ended since: workers run them again. The leases of that time expire, and a " +
			"sweeper takes the jobs back.\n" +
			"It is for ledgers in files; use pg_restore for one in PostgreSQL.",
		Args: "FILE", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", DisableDefaultText: true,
				Usage: "even if events are lost, or a worker was seen just now; never while the ledger is open"},
		},
		Examples: []cli.Example{
			{"jobledger restore jobs-2026-03-14.db", "if anything would be lost, says what, and does nothing"},
			{"jobledger restore jobs-2026-03-14.db --force", "goes back to that day"},
			{"jobledger restore jobs-2026-03-14.db --db copy.db && jobledger status --db copy.db",
				"inspect it in another place first"},
		},
		Exits: []int{cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitBusy},
		Run: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
			defer stop()
			if c.Args().First() == "" {
				return cli.Usagef("FILE is empty")
			}
			return p.restore(ctx, c.Args().First(), c.Bool("force"))
		},
	}
}

func (p *Verbs) restore(ctx context.Context, backup string, force bool) error {
	err := p.RequireFile("restore", "pg_restore or psql brings back what pg_dump has copied; "+
		"'jobledger import' takes in what 'jobledger export' wrote")
	if err != nil {
		return err
	}
	path, _ := cli.SplitDSN(p.DB)
	bar := p.StartProgress("checking the backup", -1)
	restored, err := files.Restore(ctx,
		files.RestoreOptions{Backup: backup, Ledger: path, Actor: p.Actor, Force: force, Now: p.Now})
	bar.Done()
	if err != nil {
		return p.restoreError(err, backup)
	}
	return p.printRestored(restored, backup)
}

// restoreError adds exit codes and hints to the errors of files.Restore.
func (p *Verbs) restoreError(err error, backup string) error {
	const forced = "--force restores anyway; the existing ledger stays next to the new one"
	if e, ok := errors.AsType[*files.InUseError](err); ok {
		return cli.WithHint(cli.Exitf(cli.ExitBusy, "%w", e),
			"stop the workers, and whatever else uses the ledger, and try again")
	}
	if e, ok := errors.AsType[*files.AtWorkError](err); ok {
		workers := words.Count(int64(len(e.Workers)), "worker")
		err := cli.Exitf(cli.ExitConflict, "%s seems to be at work: %s", workers,
			print.SeenAtWork(e.Workers[0], p.Now()))
		return cli.WithHint(err, "stop it; if it is gone, or cannot come back, --force restores")
	}
	if e, ok := errors.AsType[*files.LossError](err); ok {
		lost := print.Lost(e.Lost, backup, p.Now().Location())
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%s", lost), forced)
	}
	switch {
	case errors.Is(err, files.ErrSameFile):
		return cli.Usagef("%w", err)
	case errors.Is(err, files.ErrNoBackup):
		return cli.WithHint(cli.Exitf(cli.ExitUsage, "%w", err),
			"give the path of a file that 'jobledger backup' made")
	case errors.Is(err, files.ErrUnsound):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"'jobledger verify --db %s' says all that is wrong with it; take an older backup",
			words.QuoteShell(backup))
	case errors.Is(err, files.ErrForeign):
		return cli.WithHint(cli.Exitf(cli.ExitUsage, "%w", err),
			"what is there stays as it is; move it away, or give --db another place")
	case errors.Is(err, files.ErrUnreadable):
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err), forced)
	case errors.Is(err, files.ErrOwner):
		return cli.WithHint(err, "restore as that user")
	}
	return stagingError(err, p.DB)
}

// stagingError adds exit codes and hints to the errors of package files about the path of a new ledger.
func stagingError(err error, dsn string) error {
	switch {
	case errors.Is(err, files.ErrExists):
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err), "give a name that is free")
	case errors.Is(err, files.ErrLeftover):
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err),
			"it is left over from another database; move it away")
	}
	return cli.WithFolderHint(dsn, err)
}

// printRestored says what was done, and what to do next.
func (p *Verbs) printRestored(r files.Restored, backup string) error {
	if r.Kept != "" {
		p.Message("the ledger that was there is %s now", r.Kept)
	}
	if r.Lost.Events > 0 {
		p.Message("%s", print.Lost(r.Lost, "the new one", p.Now().Location()))
	}
	for i, id := range r.Lost.Erased {
		if i == print.JobsShown {
			p.Message("… and %d more", len(r.Lost.Erased)-i)
			break
		}
		p.Message("erase it again: 'jobledger erase %s --reason …'", id)
	}
	if r.Held > 0 {
		p.Message("%s %s held when the backup was made: "+
			"a worker or 'jobledger sweep' takes %s back when the %s over",
			words.Count(r.Held, "job"), words.Plural(r.Held, "was", "were"), words.Plural(r.Held, "it", "them"),
			words.Plural(r.Held, "lease is", "leases are"))
	}
	if p.JSON {
		return p.PrintJSON(restoredJSON(r, backup))
	}
	until := ""
	if r.Events > 0 {
		until = ", up to " + words.Time(p.Local(r.At))
	}
	return p.PrintLine(fmt.Sprintf("%s: %s of %s restored from %s%s",
		r.Path, words.Count(r.Events, "event"), words.Count(r.Jobs, "job"), backup, until))
}

// restoredJSON is what was restored from backup, for programs.
func restoredJSON(r files.Restored, backup string) any {
	var lost *int64
	if r.Compared {
		lost = &r.Lost.Events
	}
	return struct {
		DB        string        `json:"db"`
		From      string        `json:"from"`
		Events    int64         `json:"events"`
		At        *string       `json:"at"`
		Jobs      int64         `json:"jobs"`
		Queued    int64         `json:"queued"`
		Held      int64         `json:"held"`
		Kept      *string       `json:"kept"`
		Lost      *int64        `json:"lost"`
		LostSince *string       `json:"lost_since"`
		Enqueued  int64         `json:"lost_jobs"`
		Ended     int64         `json:"ended_since"`
		Unerased  []event.JobID `json:"erased_since"`
	}{r.Path, backup, r.Events, words.TimeOrNull(r.At), r.Jobs, r.Queued, r.Held, words.TextOrNull(r.Kept),
		lost, words.TimeOrNull(r.Lost.Since), r.Lost.Enqueued, r.Lost.Ended,
		append([]event.JobID{}, r.Lost.Erased...)}
}
