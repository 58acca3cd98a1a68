package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// restoreVerb puts a backup in the place of the ledger.
func restoreVerb(p *program) verb {
	return verb{
		name: "restore", group: groupLedger, usage: "put a backup in the place of the ledger",
		about: "FILE is what 'jobledger backup' made. It is copied and checked as 'jobledger verify' checks before anything else is done. " +
			"The copy then takes the ledger's name in one step, and the ledger that was there stays beside it as DB.before-TIME. " +
			"That it was restored is the last event of the new one. Whenever this is cut off, the old or the new ledger is there, whole.\n" +
			"It is refused while any process has the ledger open: stop the workers first. It is refused too, unless --force is given, " +
			"where somebody seems to be at work all the same, where the ledger has events that FILE has not, or where it cannot be read. " +
			"Nothing is paused. What was queued or held when the backup was made is so again, also jobs that have ended since: a worker that is started " +
			"runs them again. Leases of that time run out, and a sweeper takes the jobs back.\n" +
			"It is for ledgers in files: one in PostgreSQL is brought back by pg_restore.",
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
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // or the unfinished copy would stay
			defer stop()
			if c.Args().First() == "" {
				return usagef("FILE is empty")
			}
			r := &restoring{program: p, name: c.Args().First(), force: c.Bool("force")}
			defer r.discard()
			if err := r.restore(ctx); err != nil {
				if ctx.Err() != nil && !r.exchanging {
					return exitf(exitUnexpected, "interrupted; the ledger is as it was")
				}
				return err
			}
			return r.report()
		},
	}
}

// restoring is one restore.
type restoring struct {
	*program
	name  string // of the backup, as it was given
	force bool
	from  string // the same from the root on
	path  string // of the ledger, without links
	copy  *unfinished

	backup struct {
		events, jobs, queued, held int64
		at                         time.Time // of the last event
	}
	before     fs.FileInfo // the ledger that is there; nil: none
	unreadable error       // why that cannot be read; nil: it can
	lost       projection.Lost
	kept       string // where it stays; "": there was none
	exchanging bool   // from here on nobody can say that nothing was done
}

func (r *restoring) restore(ctx context.Context) error {
	if err := r.place(); err != nil {
		return err
	}
	if err := r.take(ctx); err != nil {
		return err
	}
	if r.before == nil {
		if err := r.record(ctx, nil); err != nil {
			return err
		}
		r.exchanging = true
		return giveName(r.copy.temp, r.path)
	}
	if err := r.migrate(ctx); err != nil {
		return err
	}
	if err := r.weigh(ctx, ledger.InspectFile); err != nil {
		return err
	}
	seized, err := ledger.LockExclusive(ctx, r.path, r.unreadable != nil)
	if errors.Is(err, ledger.ErrBusy) {
		return inUse(r.path)
	}
	if err != nil {
		return err
	}
	defer seized.Release()
	if r.unreadable == nil {
		if err := r.weigh(ctx, ledger.InspectFileOnly); err != nil { // once more: now nobody can write
			return err
		}
	}
	if err := r.record(ctx, r.lostEvents()); err != nil {
		return err
	}
	return r.exchange(seized)
}

// place finds out where the ledger is, or is to be.
func (r *restoring) place() (err error) {
	if err := r.ofFiles("restore", "pg_restore or psql brings back what pg_dump has copied; 'jobledger import' takes in what 'jobledger export' wrote"); err != nil {
		return err
	}
	if r.from, err = filepath.Abs(r.name); err != nil {
		return err
	}
	path, _ := pathOf(r.db)
	if r.path, err = filepath.Abs(path); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(r.path); err == nil {
		r.path = real
	}
	r.before, err = os.Stat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.before = nil
		return noFolder(r.path, freePlace(r.path))
	case err != nil:
		return err
	}
	from, err := os.Stat(r.from)
	if err == nil && os.SameFile(from, r.before) {
		return usagef("%s is the ledger itself", r.name)
	}
	return nil // whether it is one, weigh finds out
}

// take makes the copy and checks it.
func (r *restoring) take(ctx context.Context) error {
	bar := r.startProgress("checking the backup", -1)
	defer bar.done()
	var problems []string
	err := ledger.InspectFile(ctx, r.from, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
		problems, err = tx.Integrity(ctx)
		return err
	})
	if err != nil {
		return r.notABackup(err)
	}
	if len(problems) > 0 {
		return r.unsound("SQLite says: " + problems[0])
	}
	if r.copy, err = r.copyOf(ctx); err != nil {
		return err
	}
	failpoint.Hit("copied")
	var v projection.Verified
	err = r.copy.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if v, err = projection.Verify(ctx, tx, nil); err != nil || len(v.Findings) > 0 {
			return err
		}
		return r.inspect(ctx, tx)
	})
	if len(v.Findings) > 0 {
		f := v.Findings[0]
		return r.unsound(fmt.Sprintf("%s %s", f.Code, f.Detail))
	}
	return err
}

// copyOf opens a copy of the backup, beside the place where it is to be. To open it brings its schema up to date.
func (r *restoring) copyOf(ctx context.Context) (*unfinished, error) {
	file, err := os.CreateTemp(filepath.Dir(r.path), "."+filepath.Base(r.path)+".*") // readable by its owner only
	if err != nil {
		return nil, noFolder(r.path, err)
	}
	u := &unfinished{path: r.path, temp: file.Name()}
	err = file.Close()
	if err == nil {
		err = ledger.CopyFile(ctx, r.from, u.temp)
	}
	if err == nil {
		u.Service, err = r.service(ledger.OpenExisting(ctx, u.temp))
	}
	if err != nil {
		u.discard()
		return nil, fmt.Errorf("copy %s: %w", r.name, err)
	}
	return u, nil
}

// inspect notes what the backup holds.
func (r *restoring) inspect(ctx context.Context, tx *ledger.Tx) (err error) {
	last, err := lastEvent(ctx, tx, 0)
	if err != nil {
		return err
	}
	r.backup.events, r.backup.at = last.Pos, last.At
	queues, err := projection.Status(ctx, tx, r.now())
	for _, q := range queues {
		for state, n := range q.Jobs {
			r.backup.jobs += n
			switch {
			case state == ledger.Queued:
				r.backup.queued += n
			case state.Held():
				r.backup.held += n
			}
		}
	}
	return err
}

func (r *restoring) notABackup(err error) error {
	switch {
	case errors.Is(err, ledger.ErrNoLedger):
		return withHint(exitf(exitUsage, "there is no backup at %s", r.name), "give the path of a file that 'jobledger backup' made")
	case errors.Is(err, ledger.ErrNotALedger):
		return withHint(exitf(exitUsage, "%w", err), "give the path of a file that 'jobledger backup' made")
	case errors.Is(err, ledger.ErrDamaged):
		return r.unsound(err.Error())
	}
	return err
}

// unsound refuses a backup that is not whole.
func (r *restoring) unsound(why string) error {
	return withHint(exitf(exitDiscrepancy, "%s is not whole, and was not restored: %s", r.name, why),
		"'jobledger verify --db %s' says all that is wrong with it; take an older backup", quoteShell(r.name))
}

// record appends the last event of the copy and makes the copy durable.
func (r *restoring) record(ctx context.Context, lost *int) error {
	from := strings.ToValidUTF8(r.from, "?")
	if len(from) > commands.MaxReason {
		from = filepath.Base(from)
	}
	if err := r.copy.Restored(ctx, r.actor, ledger.Restored{From: from, Events: r.backup.events, Lost: lost}); err != nil {
		return err
	}
	if err := r.copy.whole(); err != nil {
		return err
	}
	failpoint.Hit("recorded")
	return nil
}

// exchange gives the copy the ledger's name, and the ledger another one.
func (r *restoring) exchange(seized *ledger.ExclusiveLock) error {
	if err := likeFile(r.copy.temp, r.before); err != nil {
		return withHint(fmt.Errorf("give the new ledger to the owner of the old one: %w", err), "restore as that user")
	}
	r.exchanging = true
	name := r.path + ".before-" + r.now().UTC().Format("20060102T150405Z")
	for n := 2; ; n++ {
		err := seized.Replace(r.copy.temp, name)
		if err == nil {
			r.kept = name
			return nil
		}
		if !errors.Is(err, fs.ErrExist) || n > 99 {
			return err
		}
		name = fmt.Sprintf("%s.before-%s-%d", r.path, r.now().UTC().Format("20060102T150405Z"), n)
	}
}

func (r *restoring) discard() {
	if r.copy != nil {
		r.copy.discard()
	}
}

// report says what was done, and what to do next.
func (r *restoring) report() error {
	if r.kept != "" {
		r.message("the ledger that was there is %s now", r.kept)
	}
	if r.lost.Events > 0 {
		r.message("%s", r.lostText("the new one"))
	}
	for i, id := range r.lost.Erased {
		if i == jobsShown {
			r.message("… and %d more", len(r.lost.Erased)-i)
			break
		}
		r.message("erase it again: 'jobledger erase %s --reason …'", id)
	}
	if r.backup.held > 0 {
		r.message("%s %s held when the backup was made: a worker or 'jobledger sweep' takes %s back when the %s over",
			count(r.backup.held, "job"), verbFor(r.backup.held, "was", "were"), verbFor(r.backup.held, "it", "them"), verbFor(r.backup.held, "lease is", "leases are"))
	}
	if r.json {
		erased := append([]ledger.JobID{}, r.lost.Erased...)
		return r.printJSON(struct {
			DB        string         `json:"db"`
			From      string         `json:"from"`
			Events    int64          `json:"events"`
			At        *string        `json:"at"`
			Jobs      int64          `json:"jobs"`
			Queued    int64          `json:"queued"`
			Held      int64          `json:"held"`
			Kept      *string        `json:"kept"`
			Lost      *int           `json:"lost"`
			LostSince *string        `json:"lost_since"`
			Enqueued  int64          `json:"lost_jobs"`
			Ended     int64          `json:"ended_since"`
			Unerased  []ledger.JobID `json:"erased_since"`
		}{r.path, r.name, r.backup.events, timeOrNull(r.backup.at), r.backup.jobs, r.backup.queued, r.backup.held, textOrNull(r.kept),
			r.lostEvents(), timeOrNull(r.lost.Since), r.lost.Enqueued, r.lost.Ended, erased})
	}
	until := ""
	if r.backup.events > 0 {
		until = ", up to " + formatTime(r.local(r.backup.at))
	}
	return r.printLine(fmt.Sprintf("%s: %s of %s restored from %s%s", r.path, count(r.backup.events, "event"), count(r.backup.jobs, "job"), r.name, until))
}
