package maintain

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/historytext"
	"jobledger/cmd/jobledger/internal/jobverb"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/segment"
)

// Archive copies old events into files that are checked, and checks them.
func (p *Verbs) Archive() cli.Verb {
	return cli.Verb{
		Name: "archive", Group: cli.GroupLedger, Usage: "copy old events into checked files, and check these",
		About: "'jobledger archive close' writes the events that are old enough, and not archived yet, into " +
			"files of gzipped JSON lines: zcat and jq read them. Each file is read back from the disk and compared " +
			"with the hash tree of the events before an event, archived, names it by its SHA-256. A file has whole " +
			"blocks of 256 events, without payloads and results, and before them the earlier events of the jobs in " +
			"it. The events stay in the ledger as well. What was interrupted is continued by the next call.\n\n" +
			"'jobledger archive list' shows which files there are to be, and whether they are there. 'jobledger " +
			"archive check' reads all of them: 3 if one is missing, 8 if one is not what it was. 'jobledger archive " +
			"history JOB' shows what they know of one job, without looking for it in the ledger.\n\n" +
			"The folder is the ledger's file with .archive behind it. A ledger in PostgreSQL needs --archive.",
		Args: "close|list|check|history JOB", MinArgs: 1, MaxArgs: 2,
		Flags: []cli.Flag{
			cli.DurationFlag("older-than", "with close: the events that are at least `D` old, such as 90d", "", 0,
				100*365*24*time.Hour, true),
			&cli.BoolFlag{Name: "dry-run", Usage: "with close: only say what would be archived"},
			&cli.StringFlag{Name: "archive", Usage: "the folder of the files: `DIR`",
				EnvVars: []string{"JOBLEDGER_ARCHIVE"}},
			jobverb.ReasonFlag(),
		},
		Examples: []cli.Example{
			{"jobledger archive close --older-than 90d", "once a day, from cron; 3 when there is nothing to do"},
			{"jobledger archive check && rsync -a jobledger.db.archive/ backup:jobs/", "copy only what is whole"},
			{"jobledger archive list --json | jq -r .path", "the files; zcat and jq read them"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitNoJob, cli.ExitDiscrepancy,
			cli.ExitBusy},
		Complete: map[string][]string{"": {"close", "list", "check", "history"}},
		Run:      p.archive,
	}
}

func (p *Verbs) archive(c *cli.Context) error {
	what := c.Args().First()
	switch {
	case what != "close" && what != "list" && what != "check" && what != "history":
		return cli.Usagef("archive %q: it is close, list, check or history", what)
	case what == "history" && c.NArg() == 1:
		return cli.Usagef("archive history: missing JOB")
	case what != "history" && c.NArg() > 1:
		return cli.Usagef("archive %s: unexpected argument %q", what, c.Args().Get(1))
	}
	if what != "close" && (c.IsSet("older-than") || c.Bool("dry-run") || c.IsSet("reason")) {
		return cli.Usagef("--older-than, --dry-run and --reason are for 'jobledger archive close'")
	}
	dir := c.String("archive")
	if dir == "" && ledger.IsServerAddress(p.DB) {
		return cli.WithHint(cli.Usagef("a ledger in PostgreSQL has no folder of its own"),
			"--archive DIR or JOBLEDGER_ARCHIVE says where the archive is")
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	if dir == "" {
		dir = service.Store.Path() + archive.Suffix
	}
	switch what {
	case "close":
		older, given := cli.DurationValue(c, "older-than")
		if !given {
			return cli.Usagef("archive close needs --older-than D, such as 90d")
		}
		due, err := archive.Due(c.Context, service.Store, older)
		if errors.Is(err, archive.ErrNothing) {
			return cli.Exitf(cli.ExitNothing, "no whole block of 256 events is that old and not archived")
		}
		if err != nil {
			return err
		}
		if c.Bool("dry-run") {
			return p.archiveDue(due)
		}
		for {
			done, err := archive.Close(c.Context, service, due.Hi,
				archive.Options{Dir: dir, Actor: p.Actor, Reason: c.String("reason")})
			if errors.Is(err, archive.ErrNothing) {
				return nil
			}
			if err != nil {
				return archiveError(err)
			}
			f := archive.File{Segment: done, State: archive.Present}
			f.Path = filepath.Join(dir, f.Range().Name())
			if err := p.archived(f); err != nil {
				return err
			}
		}
	case "list":
		files, err := archive.List(c.Context, service.Store, dir)
		if err != nil {
			return err
		}
		return p.archiveFiles(files, false)
	}
	if what == "history" {
		return p.archivedHistory(c, service.Store, dir)
	}
	var files []archive.File
	err = archive.Check(c.Context, service.Store, dir, func(f archive.File) error {
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	return p.archiveFiles(files, true)
}

// archivedHistory prints the history of a job as the archive has it.
func (p *Verbs) archivedHistory(c *cli.Context, store *ledger.Store, dir string) error {
	events, f, err := archive.History(c.Context, store, dir, c.Args().Get(1))
	if err != nil {
		return archiveError(err)
	}
	p.Message("as of the event %d, from %s", f.Hi, f.Path)
	return historytext.Print(p.Program, events)
}

// archiveError gives the errors of package archive their exit codes.
func archiveError(err error) error {
	switch {
	case errors.Is(err, archive.ErrMissing):
		return cli.Exitf(cli.ExitNothing, "%w", err)
	case errors.Is(err, segment.ErrOther):
		return cli.Exitf(cli.ExitConflict, "%w", err)
	case errors.Is(err, ledger.ErrDamaged), errors.Is(err, segment.ErrDamaged):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err), "'jobledger verify' says what is wrong")
	}
	return err
}

func (p *Verbs) archiveDue(due segment.Range) error {
	if p.JSON {
		return p.PrintJSON(struct {
			Lo     int64 `json:"lo"`
			Hi     int64 `json:"hi"`
			Events int64 `json:"events"`
		}{due.Lo, due.Hi, due.Events()})
	}
	return p.PrintLine(fmt.Sprintf("would archive the events %d to %d", due.Lo+1, due.Hi))
}

// archived prints a segment that was closed.
func (p *Verbs) archived(f archive.File) error {
	if p.JSON {
		return p.PrintJSON(layout.NewArchiveJSON(f))
	}
	return p.PrintLine(fmt.Sprintf("%s: the events %d to %d, %s of %s", f.Path, f.Lo+1, f.Hi,
		render.ByteSize(f.Bytes), render.Count(f.Jobs, "job")))
}

// archiveFiles prints the files. If they were checked, or are missing, the exit code says what is wrong.
func (p *Verbs) archiveFiles(files []archive.File, checked bool) (err error) {
	if len(files) == 0 {
		return cli.Exitf(cli.ExitNothing, "nothing is archived")
	}
	if p.JSON {
		err = cli.PrintJSONOf(p.Program, files, func(f archive.File) any { return layout.NewArchiveJSON(f) })
	} else {
		err = p.PrintTable(layout.Archive(files, p.Now().Location()))
	}
	missing, damaged := 0, 0
	for _, f := range files {
		switch f.State {
		case archive.Missing:
			missing++
		case archive.Damaged:
			damaged++
		}
	}
	switch {
	case err != nil || !checked:
		return err
	case damaged > 0:
		return cli.Exitf(cli.ExitDiscrepancy, "%s of the archive %s not what the ledger names",
			render.Count(int64(damaged), "file"), isOrAre(damaged))
	case missing > 0:
		return cli.Exitf(cli.ExitNothing, "%s of the archive %s not there", render.Count(int64(missing), "file"),
			isOrAre(missing))
	}
	return nil
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
