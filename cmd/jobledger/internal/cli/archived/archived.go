// Package archived is for verbs that also answer about what has left the ledger: [With] gives one the flag
// --archive and runs it on a whole copy where it needs one, [Job] finds an archived job, and [Keeper] carries
// out the archive policy.
//
// Held by TestArchiveLessIsSaid, TestForgedIndexHidesNoJob, TestScripts/left and TestScripts/removal of
// the program.
package archived

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
)

// Flag is --archive: where the archive is.
func Flag() cli.Flag {
	return &cli.StringFlag{Name: "archive", Usage: "the folder of the archive's files: `DIR`",
		EnvVars: []string{cli.ArchiveEnv}}
}

// Folder returns the folder of the archive of store: that of the flag --archive, or of the environment, also
// within a server, whose questions have no flags; "": it is not known.
func Folder(c *cli.Context, store *ledger.Store) string {
	return cli.ArchiveFolder(cmp.Or(c.String("archive"), os.Getenv(cli.ArchiveEnv)), store)
}

// Every and Events are those of an [archive.Keeper]; zero is its default. Tests set them.
var (
	Every  time.Duration
	Events int64
)

// Keeper returns what carries out the archive policy of a ledger, where its archive is known.
func Keeper(service *commands.Service, actor string) *archive.Keeper {
	checked, err := logs.Folder(service.Store.Path())
	if err != nil { // there are none
		checked = ""
	}
	return &archive.Keeper{Service: service, Actor: actor, Logs: checked, Every: Every, Events: Events,
		Dir: cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)}
}

// With returns v, which only reads, so that it also answers about what has left the ledger: it is run
// once more on a whole copy, where it needs events that are in the archive or a job that is not in the
// ledger.
func With(p *cli.Program, v cli.Verb) cli.Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)], Flag(),
		&cli.BoolFlag{Name: "archived", Usage: "everything, also what is archived", DisableDefaultText: true},
		&cli.BoolFlag{Name: "live", Usage: "only what is in the ledger, not what is archived",
			DisableDefaultText: true})
	v.Exits = append(v.Exits[:len(v.Exits):len(v.Exits)], cli.ExitNothing, cli.ExitDiscrepancy)
	run := v.Run
	v.Run = func(c *cli.Context) error {
		if p.Opened != nil { // by serve, which says what it can answer
			return run(c)
		}
		p.Live = c.Bool("live")
		if p.Live && c.Bool("archived") {
			return cli.Usagef("--live and --archived cannot be combined")
		}
		if c.Bool("archived") {
			if left, err := anyLeft(p, c.Context); err != nil {
				return err
			} else if left {
				return onWholeCopy(p, c, projection.ErrArchived, run)
			}
		}
		err := run(c)
		if p.Live || !errors.Is(err, projection.ErrArchived) && !errors.Is(err, commands.ErrNoJob) {
			return err
		}
		return onWholeCopy(p, c, err, run)
	}
	return v
}

// onWholeCopy runs a verb that failed with err on a copy of the ledger as if nothing had left it.
func onWholeCopy(p *cli.Program, c *cli.Context, err error, run func(*cli.Context) error) error {
	service, openErr := p.Open(c.Context)
	if openErr != nil {
		return err
	}
	defer service.Store.Close()
	dir := Folder(c, service.Store)
	if !errors.Is(err, projection.ErrArchived) {
		if may, lookErr := mayBeArchived(c, service.Store, dir); lookErr != nil || !may {
			return errors.Join(err, lookErr)
		}
	}
	if dir == "" {
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", err),
			"--archive DIR or %s says where the archive is", cli.ArchiveEnv)
	}
	temp, tempErr := os.MkdirTemp("", "jobledger-whole-")
	if tempErr != nil {
		return tempErr
	}
	defer os.RemoveAll(temp)
	if err := announceCopy(p, c.Context, service.Store, dir); err != nil {
		return err
	}
	whole, copyErr := archive.OpenCopy(c.Context, service.Store, dir, temp, true)
	if copyErr != nil {
		return copyErr
	}
	defer whole.Close()
	p.Opened = whole
	defer func() { p.Opened = nil }()
	return run(c)
}

// anyLeft reports whether anything has left the ledger.
func anyLeft(p *cli.Program, ctx context.Context) (left bool, err error) {
	err = p.Read(ctx, func(tx *ledger.Tx) error {
		h, err := projection.Horizon(ctx, tx)
		left = h > 0
		return err
	})
	return left, err
}

// absentJSON is an [projection.Absent] for programs.
type absentJSON struct {
	Left struct {
		Jobs    int64  `json:"jobs"`
		Until   string `json:"until"`
		Counted bool   `json:"counted"`
	} `json:"left"`
}

// Note says on stderr how many jobs have left the ledger and are not in what was printed; what names these,
// such as "are not listed". It says nothing where there are none, nor to a server, which says it itself.
func Note(p *cli.Program, a projection.Absent, what string) error {
	if a.Jobs == 0 || p.Opened != nil {
		return nil
	}
	if !p.JSON {
		return p.MessageAfter("%s %s left the ledger (to %s), and %s; --archived counts them too",
			words.Count(a.Jobs, "job"), words.Plural(a.Jobs, "has", "have"), words.Time(p.Local(a.Until)), what)
	}
	var out absentJSON
	out.Left.Jobs, out.Left.Until, out.Left.Counted = a.Jobs, words.JSONTime(a.Until), a.Counted
	text, err := json.Marshal(out)
	if err == nil {
		err = p.Flush()
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Stderr, "%s\n", text)
	}
	return err
}

// Job returns the archived job that ref names by its id, as the archive has it, or by its key; the error err,
// with which it was not found in the ledger, if there is none or the archive is not known.
func Job(ctx context.Context, service *commands.Service, ref find.Ref, err error) (j projection.Job,
	_ error) {
	dir := cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)
	if dir == "" {
		return j, err
	}
	id, idErr := ID(ctx, service.Store, ref)
	if idErr != nil || id == "" {
		return j, cmp.Or(idErr, err)
	}
	events, _, archiveErr := archive.History(ctx, service.Store, dir, id)
	if errors.Is(archiveErr, commands.ErrNoJob) {
		return j, err
	}
	for _, e := range events {
		if e.Worker.Name == j.Worker.Name && e.Attempt == j.Attempt && e.Kind() != event.KindClaimed {
			e.Worker = j.Worker // an event of a claim names it only
		}
		if archiveErr == nil {
			j, archiveErr = projection.Evolve(j, e)
		}
	}
	return j, archiveErr
}

// ID returns the id of the job that ref names, or the beginning of it, if that may have left the ledger:
// where ref is a key, by the keys of the jobs that left. It is "" if ref names no job that left.
func ID(ctx context.Context, store *ledger.Store, ref find.Ref) (id string, err error) {
	if ref.Key == "" || ref.ID != "" {
		return ref.ID, nil
	}
	var queues []string
	if ref.Queue != "" {
		queues = []string{ref.Queue}
	}
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		found, err := past.FindKey(ctx, tx, queues, ref.Key)
		if err == nil && len(found) > 1 {
			err = cli.WithHint(cli.Usagef("%q is a key in several queues, among them %s and %s", ref.Key,
				found[0].Queue, found[1].Queue), "say which with --queue (-q)")
		}
		if err == nil && len(found) == 1 {
			id = string(found[0].Job)
		}
		return err
	})
	return id, err
}

// copyPerSecond is how many events a second archive.Copy copies, about, as TestRemovalGivesSpaceBack
// measures it.
const copyPerSecond = 40_000

// announceCopy says that the whole history is read, and where that takes long, for about how long.
func announceCopy(p *cli.Program, ctx context.Context, store *ledger.Store, dir string) error {
	var events int64
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		events, err = tx.Tail(ctx)
		return err
	})
	takes := ""
	if d := time.Duration(events) * time.Second / copyPerSecond; d >= time.Second {
		takes = fmt.Sprintf(", and the ledger: %s, for about %s", words.Count(events, "event"), words.Roughly(d))
	}
	p.Message("a part of what is asked for is in the archive: reading all of %s%s", dir, takes)
	return err
}

// mayBeArchived reports whether the job that the line names may have left the ledger.
func mayBeArchived(c *cli.Context, store *ledger.Store, dir string) (may bool, err error) {
	err = store.Read(c.Context, func(tx *ledger.Tx) error {
		h, err := projection.Horizon(c.Context, tx)
		may = h > 0
		return err
	})
	id := cmp.Or(c.Args().First(), c.String("job"))
	if err != nil || !may || id == "" || dir == "" {
		return may, err
	}
	_, _, err = archive.History(c.Context, store, dir, id)
	if errors.Is(err, commands.ErrNoJob) {
		return false, nil
	}
	return true, nil // also where several begin so, or a file is missing: the copy says which
}
