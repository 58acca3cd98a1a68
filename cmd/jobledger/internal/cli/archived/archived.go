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
// once more on the kept copy, where it needs events that are in the archive or a job that is not in the
// ledger.
func With(p *cli.Program, v cli.Verb) cli.Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)], Flag(), cli.ArchiveCacheFlag(),
		&cli.BoolFlag{Name: "archived", Usage: "everything, including what is archived", DisableDefaultText: true},
		&cli.BoolFlag{Name: "live", Usage: "only what is in the ledger, not what is archived",
			DisableDefaultText: true})
	v.Exits = append(v.Exits[:len(v.Exits):len(v.Exits)], cli.ExitNothing, cli.ExitDiscrepancy)
	run := v.Run
	v.Run = func(c *cli.Context) error {
		p.Live = c.Bool("live")
		if p.Live && c.Bool("archived") {
			return cli.Usagef("--live and --archived cannot be combined")
		}
		cache, err := cli.ArchiveCache(c.String("archive-cache"))
		if err != nil {
			return err
		}
		if err = projection.ErrArchived; !c.Bool("archived") {
			err = run(c)
		}
		switch none := errors.Is(err, commands.ErrNoJob); {
		case p.Live, !none && !errors.Is(err, projection.ErrArchived):
			return err
		case none:
			if may, lookErr := mayBeArchived(p, c); lookErr != nil || !may {
				return errors.Join(err, lookErr)
			}
		}
		p.Archived = &archive.Reader{Dir: c.String("archive"), Cache: cache, Begin: func(n int64, folder string) {
			announce(p, n, folder)
		}}
		defer func() { p.Archived = nil }()
		return run(c)
	}
	return v
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
// such as "are not listed". It says nothing where there are none.
func Note(p *cli.Program, a projection.Absent, what string) error {
	if a.Jobs == 0 {
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
	if ref.NO > 0 {
		return numbered(ctx, store, ref)
	}
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

// numbered is the id of the job whose first event is at pos ref.NO, which is in the archive; otherwise
// ref.ID.
func numbered(ctx context.Context, store *ledger.Store, ref find.Ref) (id string, err error) {
	dir := cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), store)
	if dir == "" {
		return ref.ID, nil
	}
	f := ledger.Filter{After: ref.NO - 1, Until: ref.NO}
	for line, err := range archive.Lines(ctx, store, dir, f) {
		if err != nil {
			return "", err
		}
		if line.Kind() == event.KindEnqueued {
			return string(line.Job), nil
		}
	}
	return ref.ID, nil
}

// addedPerSecond is how many events a second the kept copy takes in, about: see docs/performance.md.
const addedPerSecond = 40_000

// announce says that events are added to the kept copy, where that takes long.
func announce(p *cli.Program, events int64, folder string) {
	if d := time.Duration(events) * time.Second / addedPerSecond; d >= time.Second {
		p.Message("a part of what is asked for is in the archive: reading %s into %s, for about %s",
			words.Count(events, "event"), folder, words.Roughly(d))
	}
}

// mayBeArchived reports whether the job that the line names may have left the ledger.
func mayBeArchived(p *cli.Program, c *cli.Context) (may bool, err error) {
	service, err := p.Open(c.Context)
	if err != nil {
		return false, err
	}
	defer service.Store.Close()
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		h, err := projection.Horizon(c.Context, tx)
		may = h > 0
		return err
	})
	dir, id := Folder(c, service.Store), cmp.Or(c.Args().First(), c.String("job"))
	if ref := find.Typed(id); err == nil && may && ref.NO > 0 && dir != "" {
		id, err = ID(c.Context, service.Store, ref)
	}
	if err != nil || !may || id == "" || dir == "" {
		return may, err
	}
	_, _, err = archive.History(c.Context, service.Store, dir, id)
	return !errors.Is(err, commands.ErrNoJob), nil // if several begin so, or a file is missing, the copy says it
}
