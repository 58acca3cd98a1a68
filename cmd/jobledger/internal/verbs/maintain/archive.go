package maintain

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// Archive moves old events into files that are checked, and checks them.
func (p *Verbs) Archive() cli.Verb {
	return cli.Verb{
		Name: "archive", Group: cli.GroupLedger, Usage: "move old events into checked files, and check these",
		About: "'jobledger archive --older-than 90d' writes the events that are old enough, and not archived " +
			"yet, into files of gzipped JSON lines: zcat and jq read them. Each file is read back from the disk and " +
			"compared with the hash tree of the events before an event, archived, names it by its SHA-256. Then the " +
			"jobs that ended at least so long ago leave the ledger in small steps, with all their events, payloads " +
			"and results; payloads and results are in no file. A file has whole blocks of 256 events, and before " +
			"them the earlier events of the jobs in it. What was interrupted is continued by the next call. " +
			"--keep-failed keeps failed jobs for longer; --bodies keep leaves payloads and results in the ledger, " +
			"where 'erase' reaches them. With 'archive close' everything stays in the ledger as " +
			"well.\n\n" +
			"'jobledger archive list' shows which files there are to be, and whether they are there. 'jobledger " +
			"archive check' reads all of them: 3 if one is missing, 8 if one is not what it was. 'jobledger archive " +
			"describe' reads those that an older program wrote, and records the digests of what follows from them, " +
			"their index and their summary, so that questions need not read them; 'check' does so too. 'jobledger " +
			"archive history JOB' shows what they know of one job, without looking for it in the ledger.\n\n" +
			"--policy 'older-than 90d, keep-failed 365d' has the same done from then on, in small steps, by every " +
			"'work' and 'sweep' that knows the folder. It is recorded as an event; --policy off ends it, and " +
			"'jobledger archive policy' shows it. Output of the jobs' commands stays where it is, unless --logs " +
			"remove, or 'logs remove' in the policy, says otherwise.\n\n" +
			"The folder is the ledger's file with .archive behind it. A ledger in PostgreSQL needs --archive.",
		Args: "[close|list|check|describe|policy|history JOB]", MaxArgs: 2,
		Flags: []cli.Flag{
			cli.DurationFlag("older-than", "what is at least `D` old, such as 90d", "", 0,
				100*365*24*time.Hour, true),
			cli.DurationFlag("keep-failed", "keep failed jobs in the ledger until they are `D` old, such as 365d", "",
				0, 100*365*24*time.Hour, true),
			&cli.StringFlag{Name: "logs", Usage: "`WHAT` becomes of the output of the jobs that leave: keep or remove",
				Value: "keep", DefaultText: "keep"},
			&cli.StringFlag{Name: "bodies", Usage: "`WHAT` becomes of their payloads and results: drop, or keep in " +
				"the ledger", Value: "drop", DefaultText: "drop"},
			&cli.StringFlag{Name: "policy",
				Usage: "from now on: `WHAT` is 'older-than D', 'older-than D, keep-failed D' or off"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be archived"},
			archived.Flag(),
			jobverb.ReasonFlag(),
		},
		Examples: []cli.Example{
			{"jobledger archive --older-than 90d --keep-failed 365d", "once a day, from cron; 3: nothing to do"},
			{"jobledger archive --policy 'older-than 90d'", "or leave it to the workers, once and for all"},
			{"jobledger archive check && rsync -a jobledger.db.archive/ backup:jobs/", "copy only what is whole"},
			{"jobledger archive list --json | jq -r .path", "the files; zcat and jq read them"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitNoJob, cli.ExitDiscrepancy,
			cli.ExitBusy},
		Complete: map[string][]string{"": {"close", "list", "check", "describe", "policy", "history"}},
		Run:      p.archive,
	}
}

func (p *Verbs) archive(c *cli.Context) error {
	what := c.Args().First()
	moves := what == "" || what == "close"
	switch {
	case !moves && what != "list" && what != "check" && what != "describe" && what != "history" &&
		what != "policy":
		return cli.Usagef("archive %q: it is close, list, check, describe, policy or history", what)
	case c.IsSet("policy") && (what != "" || c.IsSet("older-than") || c.IsSet("keep-failed") ||
		c.IsSet("logs") || c.IsSet("bodies") || c.Bool("dry-run")):
		return cli.Usagef("--policy stands alone, or with --reason")
	case c.IsSet("policy"):
		return p.setArchivePolicy(c)
	case what == "policy" && c.NArg() == 1:
		return p.showArchivePolicy(c)
	case what == "history" && c.NArg() == 1:
		return cli.Usagef("archive history: missing JOB")
	case what != "history" && c.NArg() > 1:
		return cli.Usagef("archive %s: unexpected argument %q", what, c.Args().Get(1))
	case !moves && (c.IsSet("older-than") || c.Bool("dry-run") || c.IsSet("reason")):
		return cli.Usagef("--older-than, --dry-run and --reason are for 'jobledger archive' and 'archive close'")
	case what != "" && (c.IsSet("keep-failed") || c.IsSet("logs") || c.IsSet("bodies")):
		return cli.Usagef("--keep-failed, --logs and --bodies are for 'jobledger archive --older-than D'")
	case c.String("bodies") != "keep" && c.String("bodies") != "drop":
		return cli.Usagef("--bodies: %q is not keep or drop", c.String("bodies"))
	case c.String("logs") != "keep" && c.String("logs") != "remove":
		return cli.Usagef("--logs: %q is not keep or remove", c.String("logs"))
	}
	older, given := cli.DurationValue(c, "older-than")
	keepFailed, _ := cli.DurationValue(c, "keep-failed")
	if moves && !given {
		return cli.Usagef("archive needs --older-than D, such as 90d")
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
	dir = cli.ArchiveFolder(dir, service.Store)
	switch what {
	case "list":
		files, err := archive.List(c.Context, service.Store, dir)
		if err != nil {
			return err
		}
		return p.archiveFiles(files, false)
	case "history":
		return p.archivedHistory(c, service.Store, dir)
	case "check", "describe":
		var files []archive.File
		err = archive.Describe(c.Context, service, p.Actor, dir, what == "check", func(f archive.File) error {
			files = append(files, f)
			return nil
		})
		if err != nil && !errors.Is(err, archive.ErrNotDescribed) {
			return err
		}
		if what == "describe" && err == nil && len(files) == 0 {
			return cli.Exitf(cli.ExitNothing, "no file needs it: the ledger says what follows from each")
		}
		if err != nil && what == "check" { // it is asked about the files
			p.Message("%v", err)
			err = nil
		}
		return cmp.Or(p.archiveFiles(files, true), archiveError(err))
	}
	m := archive.Removal{Service: service, Dir: dir, Actor: p.Actor, Reason: c.String("reason"),
		OlderThan: older, KeepFailed: keepFailed, KeepBodies: c.String("bodies") == "keep"}
	if what == "close" {
		m.Service = nil
	}
	if c.String("logs") == "remove" {
		if m.Logs, err = logs.Folder(service.Store.Path()); err != nil {
			return err
		}
	}
	return archiveError(p.archiveMove(c, service, dir, older, m))
}

// archiveMove closes what is due, and unless the Service of m is nil removes what may leave.
func (p *Verbs) archiveMove(c *cli.Context, service *commands.Service, dir string, older time.Duration,
	m archive.Removal) error {
	due, err := archive.Due(c.Context, service.Store, older)
	nothing := errors.Is(err, archive.ErrNothing)
	if err != nil && !nothing {
		return err
	}
	if c.Bool("dry-run") {
		return p.archiveDue(c, due, nothing, m)
	}
	for err == nil {
		var done projection.Segment
		done, err = archive.Close(c.Context, service, due.Hi,
			archive.Options{Dir: dir, Actor: p.Actor, Reason: c.String("reason")})
		if err == nil {
			f := archive.File{Segment: done, State: archive.Present}
			f.Path = filepath.Join(dir, f.Range().Name())
			err = p.archived(f)
		}
	}
	if !errors.Is(err, archive.ErrNothing) {
		return err
	}
	var gone event.Removed
	if m.Service != nil {
		gone, err = m.All(c.Context, nil)
		if err == nil && gone.Jobs > 0 {
			err = p.removed(gone)
		}
		if err == nil {
			err = archive.Shrink(c.Context, service.Store)
		}
		if err != nil {
			return err
		}
	}
	if nothing && gone.Jobs == 0 {
		return cli.Exitf(cli.ExitNothing, "no whole block of 256 events is that old and not archived")
	}
	return nil
}

// removed prints what has left the ledger.
func (p *Verbs) removed(gone event.Removed) error {
	if p.JSON {
		return p.PrintJSON(struct {
			Removed int64 `json:"removed"` // jobs
			Events  int64 `json:"events"`
			Bodies  int64 `json:"bodies"`
			Bytes   int64 `json:"bytes"` // of the bodies
			Keys    int64 `json:"keys"`
			Kept    int64 `json:"kept"` // bodies that stay
		}{gone.Jobs, gone.Events, gone.Bodies, gone.BodyBytes, gone.Keys, gone.Kept})
	}
	return p.PrintLine(fmt.Sprintf("%s with %s left the ledger", words.Count(gone.Jobs, "job"),
		words.Count(gone.Events, "event")))
}

// archivedHistory prints the history of a job as the archive has it.
func (p *Verbs) archivedHistory(c *cli.Context, store *ledger.Store, dir string) error {
	events, f, err := archive.History(c.Context, store, dir, c.Args().Get(1))
	if err != nil {
		return archiveError(err)
	}
	p.Message("as of the event %d, from %s", f.Hi, f.Path)
	return jobverb.PrintHistory(p.Program, events)
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

// archiveDue prints what there is to do.
func (p *Verbs) archiveDue(c *cli.Context, due segment.Range, nothing bool, m archive.Removal) error {
	var jobs int64
	if m.Service != nil {
		var err error
		if jobs, err = m.Count(c.Context, due.Hi); err != nil {
			return err
		}
	}
	if nothing && jobs == 0 {
		return cli.Exitf(cli.ExitNothing, "no whole block of 256 events is that old and not archived")
	}
	if nothing {
		due.Lo = due.Hi
	}
	switch {
	case p.JSON && m.Service == nil:
		return p.PrintJSON(struct {
			Lo     int64 `json:"lo"`
			Hi     int64 `json:"hi"`
			Events int64 `json:"events"`
		}{due.Lo, due.Hi, due.Events()})
	case p.JSON:
		return p.PrintJSON(struct {
			Lo     int64 `json:"lo"`
			Hi     int64 `json:"hi"`
			Events int64 `json:"events"`
			Jobs   int64 `json:"jobs"` // that would leave
		}{due.Lo, due.Hi, due.Events(), jobs})
	}
	text := "would archive no events"
	if due.Hi > due.Lo {
		text = fmt.Sprintf("would archive the events %d to %d", due.Lo+1, due.Hi)
	}
	if m.Service != nil {
		text += fmt.Sprintf(", and remove %s at most", words.Count(jobs, "job"))
	}
	return p.PrintLine(text)
}

// archived prints a segment that was closed.
func (p *Verbs) archived(f archive.File) error {
	return p.JSONOrLine(print.NewArchiveJSON(f), fmt.Sprintf("%s: the events %d to %d, %s of %s", f.Path, f.Lo+1,
		f.Hi, words.ByteSize(f.Bytes), words.Count(f.Jobs, "job")))
}

// archiveFiles prints the files. If they were checked, or are missing, the exit code says what is wrong.
func (p *Verbs) archiveFiles(files []archive.File, checked bool) (err error) {
	if len(files) == 0 {
		return cli.Exitf(cli.ExitNothing, "nothing is archived")
	}
	if p.JSON {
		err = cli.PrintJSONOf(p.Program, files, func(f archive.File) any { return print.NewArchiveJSON(f) })
	} else {
		err = p.PrintTable(print.Archive(files, p.Now().Location()))
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
			words.Count(int64(damaged), "file"), isOrAre(damaged))
	case missing > 0:
		return cli.Exitf(cli.ExitNothing, "%s of the archive %s not there", words.Count(int64(missing), "file"),
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
