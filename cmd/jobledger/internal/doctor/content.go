package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
	"jobledger/projection"
)

const (
	sweepSlack   = 2 * time.Minute // on top of the lease and its grace
	patience     = 5 * time.Minute // with ready jobs that nobody may take
	betweenLooks = 300 * time.Millisecond
)

// content looks into the ledger, as far as it can be read. first is what came of trying.
func (d *examination) content(ctx context.Context, first error) {
	const restore = "restore a copy that 'jobledger backup' made: 'jobledger restore FILE'"
	look := ledger.InspectFile
	switch {
	case errors.Is(first, ledger.ErrStray):
		d.problem(CodeStray, "end what still uses the old ledger, move the -wal and -shm away (keep them: they may hold its last commands), then 'jobledger verify'", "%v", first)
		look = ledger.InspectFileOnly
	case errors.Is(first, ledger.ErrBusy):
		d.problem(CodeUnreadable, "end the process that keeps others out", "it cannot be read: %v", first)
		return
	case errors.Is(first, fs.ErrPermission):
		d.problem(CodeUnreadable, "run doctor as a user who may", "you may not read it: %v", first)
		look = ledger.InspectFileOnly // which makes no file
	case first != nil:
		d.problem(CodeUnreadable, restore, "it cannot be read: %v", first)
		look = ledger.InspectFileOnly
	}
	var facts ledger.FileFacts
	damaged := errors.Is(first, ledger.ErrDamaged)
	err := look(ctx, d.dsn, func(tx *ledger.Tx, f ledger.FileFacts) error {
		facts = f
		d.settings(f)
		if f.Schema == f.Newest { // the tables of an older one are others
			damaged = d.inside(ctx, tx) || damaged
		}
		return nil
	})
	if err != nil && first == nil {
		d.problem(CodeUnreadable, restore, "it cannot be read: %v", err)
		damaged = damaged || errors.Is(err, ledger.ErrDamaged)
	}
	if facts.Backlog > MaxBacklog {
		d.backlog(ctx, facts)
	}
	if !errors.Is(first, ledger.ErrStray) {
		d.strayWAL(ctx, damaged)
	}
	d.journal(facts)
}

func (d *examination) settings(f ledger.FileFacts) {
	d.Schema, d.Engine = f.Schema, "SQLite "+f.SQLite
	d.older(f.Schema, f.Newest)
	if !f.WALMode {
		d.advise(CodeSettings, "nothing: the next command that opens it changes that", "it is not in WAL mode: a copy as 'jobledger backup' makes it, with which nobody has worked yet")
	}
}

func (d *examination) older(version, newest int) {
	if version < newest {
		d.advise(CodeSchema, d.command("migrate"), "its schema is version %d; the next command of this program makes it %d, which older programs refuse; what it holds is looked at only then", version, newest)
	}
}

// inside runs the checks that need the tables. One that cannot be carried out does not keep the others from it;
// damaged says that this is the ledger's fault.
func (d *examination) inside(ctx context.Context, tx *ledger.Tx) (damaged bool) {
	var reasons []string
	failed := make(map[string][]string) // checks by the reason
	for _, check := range []struct {
		what string
		run  func(context.Context, *ledger.Tx) error
	}{
		{"guards", d.guards}, {"the clock", d.clock}, {"leases", d.leases}, {"workers", d.workers}, {"queues", d.queues},
		{"ready jobs", d.stranded}, {"logs", d.logFolders}, {"pages", d.pages},
	} {
		if err := check.run(ctx, tx); err != nil && ctx.Err() == nil {
			if failed[err.Error()] == nil {
				reasons = append(reasons, err.Error())
			}
			failed[err.Error()] = append(failed[err.Error()], check.what)
			damaged = damaged || errors.Is(err, ledger.ErrDamaged)
		}
	}
	for _, reason := range reasons {
		d.problem(CodeUnreadable, "'"+d.command("verify")+"' says what is wrong; a backup is the way back", "%s cannot be checked: %s",
			strings.Join(failed[reason], ", "), reason)
	}
	return damaged
}

func (d *examination) guards(ctx context.Context, tx *ledger.Tx) error {
	problems, err := tx.Guards(ctx)
	for _, what := range problems {
		d.problem(CodeGuards, fmt.Sprintf("'%s' shows whether history was changed; '%s' puts it right", d.command("verify"), d.command("rebuild")),
			"%s", what)
	}
	return err
}

func (d *examination) clock(ctx context.Context, tx *ledger.Tx) error {
	last, err := state.LastEvent(ctx, tx, 0)
	if d.Events = last.Pos; err == nil && last.At.Sub(d.now()) > clockSlack {
		d.problem(CodeClock, "set the clock; until it has caught up, new events get the time of the last one, and leases end late",
			"the last event was recorded at %s: this clock has been set back, or that one was ahead", d.since(last.At))
	}
	return err
}

func (d *examination) leases(ctx context.Context, tx *ledger.Tx) error {
	o, err := projection.OverdueLeases(ctx, tx, d.now(), sweepSlack)
	if err == nil && o.Leases > 0 {
		d.problem(CodeLeases, "'"+d.command("sweep")+"' once, or let a worker run: it sweeps",
			"%s ran out, the first at %s, and nobody took the %s back: no sweeper runs", render.Count(o.Leases, "lease"), d.since(o.Oldest), render.Plural(o.Leases, "job", "jobs"))
	}
	return err
}

func (d *examination) workers(ctx context.Context, tx *ledger.Tx) error {
	workers, err := projection.Workers(ctx, tx, d.now(), false)
	var silent []projection.Worker
	held := 0
	for _, w := range workers {
		if w.State == projection.Silent {
			silent = append(silent, w)
			held += len(w.Jobs)
		}
	}
	if len(silent) > 0 {
		w := silent[0]
		d.advise(CodeSilent, "see whether the process is there ('"+d.command("workers")+"'); if it is gone, a sweeper takes its jobs back",
			"%s said no goodbye and %s silent: %s, holding %s; the first: %s (%s), last seen %s", render.Count(int64(len(silent)), "worker"),
			render.Plural(int64(len(silent)), "is", "are"), render.WorkerNames(silent), render.Count(int64(held), "job"), w.Name, render.Process(w.Worker), render.Age(w.SeenAt, d.now()))
	}
	return err
}

func (d *examination) queues(ctx context.Context, tx *ledger.Tx) error {
	queues, err := projection.Status(ctx, tx, d.now())
	for _, q := range queues {
		if q.Paused && q.Ready > 0 {
			d.advise(CodePaused, d.command("resume -q "+q.Name), "the queue %s is paused by %s since %s: %s; %s there",
				q.Name, q.Actor, d.since(q.Since), render.ReasonOrNone(q.Reason), render.Count(q.Ready, "job")+render.Plural(q.Ready, " waits", " wait"))
		}
	}
	return err
}

func (d *examination) stranded(ctx context.Context, tx *ledger.Tx) error {
	found, err := projection.StrandedJobs(ctx, tx, d.now(), patience)
	for _, s := range found {
		words := []string{"work -q " + s.Queue}
		asks := ""
		if s.Version != "" {
			words, asks = append(words, "--version "+render.QuoteShell(s.Version)), asks+" of version "+s.Version
		}
		for _, label := range s.Requires {
			words, asks = append(words, "--capability "+render.QuoteShell(label)), asks+" with "+label
		}
		nobody := "no worker serves that queue"
		if len(s.Serving) > 0 {
			nobody = fmt.Sprintf("none of the workers of that queue (%s) is one%s", render.WorkerNames(s.Serving), asks)
		}
		d.problem(CodeStranded, d.command(strings.Join(words, " "))+" -- CMD", "%s in %s, ready since %s, %s nobody to take %s: %s",
			render.Count(s.Jobs, "job"), s.Queue, d.since(s.Since), render.Plural(s.Jobs, "has", "have"), render.Plural(s.Jobs, "it", "them"), nobody)
	}
	return err
}

// logFolders finds what commands wrote for jobs that are not there, or that were to be forgotten.
func (d *examination) logFolders(ctx context.Context, tx *ledger.Tx) error {
	folder := d.logs
	if folder == "" {
		return nil // nothing is kept then
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var gone, erased []string
	for _, entry := range entries {
		if _, err := ulid.ParseStrict(entry.Name()); err != nil {
			continue
		}
		j, ok, err := projection.Get(ctx, tx, ledger.JobID(entry.Name()))
		switch {
		case err != nil:
			return err
		case !ok:
			gone = append(gone, entry.Name())
		case j.Erased:
			erased = append(erased, entry.Name())
		}
	}
	if len(erased) > 0 {
		d.problem(CodeLogs, "rm -r "+render.QuoteShell(filepath.Join(folder, erased[0])), "%s of jobs that were erased %s still there: %s",
			render.Count(int64(len(erased)), "log"), render.Plural(int64(len(erased)), "is", "are"), some(erased))
	}
	if len(gone) > 0 && !ledger.IsServerAddress(d.Ledger) { // else they may be of another server's ledger of the same name
		d.advise(CodeLogs, "look at them and remove them: rm -r "+render.QuoteShell(filepath.Join(folder, gone[0])),
			"%s in %s %s of no job of this ledger: %s", render.Count(int64(len(gone)), "log"), folder, render.Plural(int64(len(gone)), "is", "are"), some(gone))
	}
	return nil
}

// some are the first few of names.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (d *examination) pages(ctx context.Context, tx *ledger.Tx) error {
	if !d.deep {
		return nil
	}
	problems, err := tx.Integrity(ctx)
	for _, what := range problems {
		d.problem(CodePages, "restore a copy that 'jobledger backup' made, after a look at the disk: 'jobledger restore FILE'", "the file is damaged: %s", what)
	}
	return err
}
