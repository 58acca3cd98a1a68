package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/deps"
	"jobledger/projection/keyframe"
	"jobledger/projection/past"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

const (
	heldAfter    = 24 * time.Hour // a hold is for the enqueueing of a batch, which takes less than a day
	recentEvents = 200_000        // of the day before, that are read to know what is normal
)

// content checks what is in the file, as far as it can be read. first is the error of a first attempt.
func (d *examination) content(ctx context.Context, first error) {
	const restore = "restore a copy that 'jobledger backup' made: 'jobledger restore FILE'"
	inspect := ledger.InspectFile
	switch {
	case errors.Is(first, ledger.ErrForeignSidecar):
		d.problem(CodeForeignSidecar,
			"end the processes that still use the old ledger, move the -wal and -shm away "+
				"(keep them: they may hold its last commands), then 'jobledger verify'", "%v", first)
		inspect = ledger.InspectFileOnly
	case errors.Is(first, ledger.ErrBusy):
		d.problem(CodeUnreadable, "end the process that keeps others out", "it cannot be read: %v", first)
		return
	case errors.Is(first, fs.ErrPermission):
		d.problem(CodeUnreadable, "run doctor as a user who may", "you may not read it: %v", first)
		inspect = ledger.InspectFileOnly // which makes no file
	case first != nil:
		d.problem(CodeUnreadable, restore, "it cannot be read: %v", first)
		inspect = ledger.InspectFileOnly
	}
	var facts ledger.FileFacts
	damaged := errors.Is(first, ledger.ErrDamaged)
	err := inspect(ctx, d.dsn, func(tx *ledger.Tx, f ledger.FileFacts) error {
		facts = f
		d.settings(f)
		if f.Schema == f.Newest { // the checks know only the newest tables
			damaged = d.tables(ctx, tx) || damaged
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
	if !errors.Is(first, ledger.ErrForeignSidecar) {
		d.strayWAL(ctx, damaged)
	}
	d.journal(facts)
}

func (d *examination) settings(f ledger.FileFacts) {
	d.Schema, d.Engine = f.Schema, "SQLite "+f.SQLite
	d.schema(f.Schema, f.Newest)
	if !f.WALMode {
		d.advise(CodeSettings, "none needed: the next command that opens it changes that",
			"it is not in WAL mode: a copy as 'jobledger backup' makes it, which has not been used yet")
	}
}

func (d *examination) schema(version, newest int) {
	switch {
	case version < newest && ledger.IsServerAddress(d.dsn):
		d.problem(CodeSchema, d.command("migrate"),
			"its schema is version %d, and this program needs %d; its content can be checked only then",
			version, newest)
	case version > newest:
		d.advise(CodeSchema, "use a newer jobledger", "its schema is version %d, and this program knows "+
			"schemas up to %d; its content cannot be checked", version, newest)
	case version < newest:
		d.advise(CodeSchema, d.command("migrate"),
			"its schema is version %d; the next command of this program makes it %d, which older programs refuse; "+
				"its content can be checked only then", version, newest)
	}
}

// tables runs the checks that read tables. A check that fails does not keep the others from running. damaged
// says that one failed because the ledger is damaged.
func (d *examination) tables(ctx context.Context, tx *ledger.Tx) (damaged bool) {
	var reasons []string
	remedies := make(map[string]string) // by the reason
	failed := make(map[string][]string) // names of checks by the reason
	for _, check := range []struct {
		name string
		run  func(context.Context, *ledger.Tx) error
	}{
		{"guards", d.guards}, {"the clock", d.clock}, {"whether it is a copy", d.copied},
		{"queues and workers", d.ofLive(d.health)}, {"held jobs", d.ofLive(d.held)},
		{"logs", d.logFolders}, {"seals", d.ofLive(d.evidence)}, {"the archive", d.archiveFiles},
		{"keyframes", d.ofLive(d.keyframes)},
		{"pages", d.pages},
	} {
		if err := check.run(ctx, tx); err != nil && ctx.Err() == nil {
			reason := err.Error()
			if remedies[reason] = d.remedy(err); failed[reason] == nil {
				reasons = append(reasons, reason)
			}
			failed[reason] = append(failed[reason], check.name)
			damaged = damaged || errors.Is(err, ledger.ErrDamaged)
		}
	}
	for _, reason := range reasons {
		d.problem(CodeUnreadable, remedies[reason],
			"%s cannot be checked: %s", strings.Join(failed[reason], ", "), reason)
	}
	return damaged
}

// remedy is the advice if a check failed with err. A backup helps only where the ledger cannot be read.
func (d *examination) remedy(err error) string {
	file, isFile := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "run doctor as the owner of the ledger, or let this user read what it names"
	case isFile:
		return "see why " + file.Path + " cannot be read; the ledger itself is not affected"
	}
	return "'" + d.command("verify") + "' says what is wrong; restore a backup"
}

func (d *examination) guards(ctx context.Context, tx *ledger.Tx) error {
	problems, err := tx.Guards(ctx)
	for _, what := range problems {
		d.problem(CodeGuards, fmt.Sprintf("'%s' shows whether history was changed; '%s' puts it right",
			d.command("verify"), d.command("rebuild")), "%s", what)
	}
	return err
}

func (d *examination) clock(ctx context.Context, tx *ledger.Tx) error {
	last, _, err := tx.OneEvent(ctx, ledger.Filter{Last: true})
	if d.Events = last.Pos; err == nil && last.At.Sub(d.Now()) > clockSlack {
		d.problem(CodeClock,
			"set the clock; until it has caught up, new events get the time of the last one, and leases end late",
			"the last event was recorded at %s: this clock has been set back, or that one was ahead", d.since(last.At))
	}
	return err
}

// copied finds out whether the ledger is a copy that replay made.
func (d *examination) copied(ctx context.Context, tx *ledger.Tx) error {
	made, ok, err := status.CopyOf(ctx, tx)
	if d.copy = ok; ok {
		d.advise(CodeCopy, "none needed: '"+d.command("status")+"' and '"+d.command("why JOB")+
			"' say how things were",
			"it is a copy of %s as of %s: its leases, workers and queues are not judged", made.From, d.since(made.At))
	}
	return err
}

// ofLive skips a check if the ledger is a copy: nothing can be done about the past.
func (d *examination) ofLive(check func(context.Context, *ledger.Tx) error) func(context.Context,
	*ledger.Tx) error {
	return func(ctx context.Context, tx *ledger.Tx) error {
		if d.copy {
			return nil
		}
		return check(ctx, tx)
	}
}

// health is what the rules find that `status` and the pages ask too.
func (d *examination) health(ctx context.Context, tx *ledger.Tx) error {
	found, err := query.Problems{At: projection.Now(d.Now()), Most: recentEvents}.Read(ctx, tx)
	for _, p := range found {
		c := state.Say(p, d.Now())
		if c.Code == "" || c.Level == state.Info {
			continue
		}
		report := d.advise
		if c.Level == state.Problem {
			report = d.problem
		}
		remedy, command, starts := strings.Cut(c.Remedy, " -- ")
		if remedy = d.command(remedy); starts {
			remedy += " -- " + command
		}
		report(c.Code, remedy, "%s", c.Line())
	}
	return err
}

// logFolders finds the output of jobs that are not in the ledger, or that were erased.
func (d *examination) logFolders(ctx context.Context, tx *ledger.Tx) error {
	if d.Logs == "" {
		return nil
	}
	entries, err := os.ReadDir(d.Logs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var unknown, erased []string
	for _, entry := range entries {
		if _, err := ulid.ParseStrict(entry.Name()); err != nil {
			continue
		}
		j, ok, err := projection.Get(ctx, tx, event.JobID(entry.Name()))
		switch {
		case err != nil:
			return err
		case !ok:
			if left, err := past.MayHaveLeft(ctx, tx, event.JobID(entry.Name())); err != nil || left {
				if err != nil {
					return err
				}
				continue // its job is archived
			}
			unknown = append(unknown, entry.Name())
		case j.Erased:
			erased = append(erased, entry.Name())
		}
	}
	remove := func(job string) string { return "rm -r " + words.QuoteShell(filepath.Join(d.Logs, job)) }
	if n := int64(len(erased)); n > 0 {
		d.problem(CodeLogs, remove(erased[0]), "%s of jobs that were erased %s still there: %s",
			words.Count(n, "log"), words.Plural(n, "is", "are"), someOf(erased))
	}
	// With a server, they may belong to a ledger of the same name on another server.
	if n := int64(len(unknown)); n > 0 && !ledger.IsServerAddress(d.Ledger) {
		d.advise(CodeLogs, "look at them and remove them: "+remove(unknown[0]),
			"%s in %s %s of no job of this ledger: %s",
			words.Count(n, "log"), d.Logs, words.Plural(n, "is", "are"), someOf(unknown))
	}
	return d.output(ctx, tx)
}

// Bounds of the check of output: of the latest attempts, in the last events, up to so many bytes.
const (
	outputAttempts = 100
	outputEvents   = 20_000
	outputBytes    = 64 << 20
)

// output compares the output of the latest attempts with the digests in their events.
func (d *examination) output(ctx context.Context, tx *ledger.Tx) error {
	r, err := logs.Recent(ctx, tx, d.Logs, outputAttempts, outputEvents, outputBytes)
	unreadable := func(f audit.Finding) bool { return f.Code == logs.FindUnreadable }
	if i := slices.IndexFunc(r.Findings, unreadable); i >= 0 {
		d.advise(CodeOutput, "run doctor as a user who may, or look at "+words.QuoteShell(d.Logs),
			"%s of the latest attempts cannot be read; the first: job %s: %s", words.Count(r.Unreadable, "log"),
			r.Findings[i].Job, r.Findings[i].Detail)
		r.Findings = slices.DeleteFunc(r.Findings, unreadable)
	}
	if n := int64(len(r.Findings)); n > 0 {
		f := r.Findings[0]
		d.problem(CodeOutput, "see who may write "+words.QuoteShell(d.Logs)+"; '"+d.command("verify --logs")+
			"' checks all of them",
			"%s of the latest attempts %s not what the command wrote; the first: job %s, %s: %s",
			words.Count(n, "log"), words.Plural(n, "is", "are"), f.Job, f.Field, f.Detail)
	}
	return err
}

// someOf lists the first five names and the number of the others.
func someOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (d *examination) pages(ctx context.Context, tx *ledger.Tx) error {
	if !d.Deep {
		return nil
	}
	problems, err := tx.Integrity(ctx)
	for _, what := range problems {
		d.problem(CodePages,
			"restore a copy that 'jobledger backup' made, after a look at the disk: 'jobledger restore FILE'",
			"the file is damaged: %s", what)
	}
	return err
}

// held finds jobs that are not unblocked: a hold is all that a job may wait for without end.
func (d *examination) held(ctx context.Context, tx *ledger.Tx) error {
	upTo, err := tx.PosAt(ctx, d.Now().Add(-heldAfter))
	if err != nil {
		return err
	}
	n, first, err := deps.Held(ctx, tx, upTo)
	if err != nil || n == 0 {
		return err
	}
	found, err := projection.GetMany(ctx, tx, []int64{first})
	if j, ok := found[first]; ok && err == nil {
		d.advise(CodeHeld, d.command("unblock "+string(j.ID)),
			"%s %s held, and %s enqueued more than a day ago; the first: %s in %s", words.Count(n, "job"),
			words.Plural(n, "is", "are"), words.Plural(n, "was", "were"), j.ID, j.Queue)
	}
	return err
}

// maxSinceKeyframe is more events than a sweeper leaves after a keyframe. A variable for the tests only.
var maxSinceKeyframe = int64(100_000)

// keyframes advises a sweep where the events since the last keyframe are many. verify names a damaged one.
func (d *examination) keyframes(ctx context.Context, tx *ledger.Tx) error {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return err
	}
	last, err := keyframe.Before(ctx, tx, tail)
	if err == nil && tail-last.Pos > maxSinceKeyframe {
		d.advise(CodeKeyframes, d.command("sweep"), "%s came after the last keyframe: status, and questions about "+
			"a moment, may read the rows of all jobs", words.Count(tail-last.Pos, "event"))
	}
	if errors.Is(err, ledger.ErrDamaged) {
		return nil
	}
	return err
}
