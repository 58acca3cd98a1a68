package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// restoreVerb replaces the ledger by a backup.
func restoreVerb(p *program) verb {
	return verb{
		name: "restore", group: groupLedger, usage: "put a backup in the place of the ledger",
		about: "FILE is a file that 'jobledger backup' made. It is copied, and the copy is checked as 'jobledger verify' does. The copy " +
			"then takes the ledger's name in one step. The old ledger is kept as DB.before-TIME. The last event of the new one records the " +
			"restore. If the command is interrupted, either the old or the new ledger is there, whole.\n" +
			"It is refused while any process has the ledger open: stop the workers first. Unless --force is given, it is also refused " +
			"if workers seem to be alive, if the ledger has events that FILE lacks, or if the ledger cannot be read. " +
			"No queue is paused. Jobs that were queued or held when the backup was made are so again, even if they have ended since: " +
			"workers run them again. The leases of that time expire, and a sweeper takes the jobs back.\n" +
			"It is for ledgers in files; use pg_restore for one in PostgreSQL.",
		args: "FILE", minArgs: 1, maxArgs: 1,
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "although events are lost, or a worker was seen just now; never while the ledger is open", DisableDefaultText: true},
		},
		examples: []example{
			{"jobledger restore jobs-2026-03-14.db", "says what would be lost, if anything would, and then does nothing"},
			{"jobledger restore jobs-2026-03-14.db --force", "goes back to that day"},
			{"jobledger restore jobs-2026-03-14.db --db copy.db && jobledger status --db copy.db", "look at it in another place first"},
		},
		exits: []int{exitConflict, exitDiscrepancy, exitBusy},
		run: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
			defer stop()
			if c.Args().First() == "" {
				return usagef("FILE is empty")
			}
			return p.restore(ctx, c.Args().First(), c.Bool("force"))
		},
	}
}

func (p *program) restore(ctx context.Context, backup string, force bool) error {
	err := p.ofFiles("restore", "pg_restore or psql brings back what pg_dump has copied; "+
		"'jobledger import' takes in what 'jobledger export' wrote")
	if err != nil {
		return err
	}
	path, _ := pathOf(p.db)
	bar := p.startProgress("checking the backup", -1)
	restored, err := files.Restore(ctx, files.RestoreOptions{Backup: backup, Ledger: path, Actor: p.actor, Force: force, Now: p.now})
	bar.done()
	if err != nil {
		return p.restoreError(err, backup)
	}
	return p.printRestored(restored, backup)
}

// restoreError adds exit codes and hints to the errors of files.Restore.
func (p *program) restoreError(err error, backup string) error {
	const forced = "--force restores all the same; the ledger that is there stays next to the new one"
	if e, ok := errors.AsType[*files.InUseError](err); ok {
		return withHint(exitf(exitBusy, "%w", e), "stop the workers, and whatever else uses the ledger, and try again")
	}
	if e, ok := errors.AsType[*files.AtWorkError](err); ok {
		return withHint(exitf(exitConflict, "%s seems to be at work: %s", render.Count(int64(len(e.Workers)), "worker"), p.seenAtWork(e.Workers[0])),
			"stop it; if it is gone, or cannot come back, --force restores")
	}
	if e, ok := errors.AsType[*files.LossError](err); ok {
		return withHint(exitf(exitConflict, "%s", p.lostText(e.Lost, backup)), forced)
	}
	switch {
	case errors.Is(err, files.ErrSameFile):
		return usagef("%w", err)
	case errors.Is(err, files.ErrNoBackup):
		return withHint(exitf(exitUsage, "%w", err), "give the path of a file that 'jobledger backup' made")
	case errors.Is(err, files.ErrUnsound):
		return withHint(exitf(exitDiscrepancy, "%w", err),
			"'jobledger verify --db %s' says all that is wrong with it; take an older backup", quoteShell(backup))
	case errors.Is(err, files.ErrForeign):
		return withHint(exitf(exitUsage, "%w", err), "what is there stays as it is; move it away, or give --db another place")
	case errors.Is(err, files.ErrUnreadable):
		return withHint(exitf(exitConflict, "%w", err), forced)
	case errors.Is(err, files.ErrOwner):
		return withHint(err, "restore as that user")
	}
	return stagingError(err, p.db)
}

// stagingError adds exit codes and hints to the errors of package files that concern the path of a new ledger.
func stagingError(err error, dsn string) error {
	switch {
	case errors.Is(err, files.ErrExists):
		return withHint(exitf(exitConflict, "%w", err), "give a name that is free")
	case errors.Is(err, files.ErrLeftover):
		return withHint(exitf(exitConflict, "%w", err), "it is what is left of another one; move it away")
	}
	return noFolder(dsn, err)
}

// seenAtWork describes a worker that seems to be alive.
func (p *program) seenAtWork(w projection.Worker) string {
	text := fmt.Sprintf("%s (%s) was seen %s", w.Name, render.Process(w.Worker), render.Age(w.SeenAt, p.now()))
	if len(w.Jobs) > 0 {
		text += fmt.Sprintf(" and holds %s until %s", render.Count(int64(len(w.Jobs)), "job"), render.Time(p.local(w.Jobs[0].LeaseUntil)))
	}
	return text
}

// lostText says what a ledger holds that the other one does not, and what that means for its jobs.
func (p *program) lostText(l audit.Lost, other string) string {
	text := fmt.Sprintf("%s since %s %s not in %s",
		render.Count(l.Events, "event"), render.Time(p.local(l.Since)), verbFor(l.Events, "is", "are"), other)
	var jobs []string
	if l.Enqueued > 0 {
		jobs = append(jobs, render.Count(l.Enqueued, "job")+" enqueued since")
	}
	if l.Ended > 0 {
		jobs = append(jobs, fmt.Sprintf("the end of %s, which may run again", render.Count(l.Ended, "job")))
	}
	if len(l.Erased) > 0 {
		jobs = append(jobs, fmt.Sprintf("that the payload of %s was erased, which comes back", render.Count(int64(len(l.Erased)), "job")))
	}
	if len(jobs) > 0 {
		text += ", among them " + strings.Join(jobs, "; ")
	}
	return text
}

// printRestored says what was done, and what to do next.
func (p *program) printRestored(r files.Restored, backup string) error {
	if r.Kept != "" {
		p.message("the ledger that was there is %s now", r.Kept)
	}
	if r.Lost.Events > 0 {
		p.message("%s", p.lostText(r.Lost, "the new one"))
	}
	for i, id := range r.Lost.Erased {
		if i == jobsShown {
			p.message("… and %d more", len(r.Lost.Erased)-i)
			break
		}
		p.message("erase it again: 'jobledger erase %s --reason …'", id)
	}
	if r.Held > 0 {
		p.message("%s %s held when the backup was made: a worker or 'jobledger sweep' takes %s back when the %s over",
			render.Count(r.Held, "job"), verbFor(r.Held, "was", "were"), verbFor(r.Held, "it", "them"), verbFor(r.Held, "lease is", "leases are"))
	}
	if p.json {
		return p.printRestoredJSON(r, backup)
	}
	until := ""
	if r.Events > 0 {
		until = ", up to " + render.Time(p.local(r.At))
	}
	return p.printLine(fmt.Sprintf("%s: %s of %s restored from %s%s",
		r.Path, render.Count(r.Events, "event"), render.Count(r.Jobs, "job"), backup, until))
}

func (p *program) printRestoredJSON(r files.Restored, backup string) error {
	var lost *int64
	if r.Compared {
		lost = &r.Lost.Events
	}
	return p.printJSON(struct {
		DB        string         `json:"db"`
		From      string         `json:"from"`
		Events    int64          `json:"events"`
		At        *string        `json:"at"`
		Jobs      int64          `json:"jobs"`
		Queued    int64          `json:"queued"`
		Held      int64          `json:"held"`
		Kept      *string        `json:"kept"`
		Lost      *int64         `json:"lost"`
		LostSince *string        `json:"lost_since"`
		Enqueued  int64          `json:"lost_jobs"`
		Ended     int64          `json:"ended_since"`
		Unerased  []ledger.JobID `json:"erased_since"`
	}{r.Path, backup, r.Events, render.TimeOrNull(r.At), r.Jobs, r.Queued, r.Held, render.TextOrNull(r.Kept),
		lost, render.TimeOrNull(r.Lost.Since), r.Lost.Enqueued, r.Lost.Ended, append([]ledger.JobID{}, r.Lost.Erased...)})
}
