package audit

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/incident"
	"jobledger/ledger"
)

// Incident collects what a post-mortem needs.
func (p *Verbs) Incident() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "incident", Group: cli.GroupAudit,
		Usage: "write a folder with everything about a window of time, for a post-mortem",
		About: "DIR gets report.md (lost workers, reclaims, refused writes, failures by code, what operators " +
			"did, queue depth by minute in depth.svg, and whether these events and their jobs verify), events.jsonl " +
			"(every event up to --to, which 'jobledger import' opens elsewhere), attempts.csv, trace.json for " +
			"ui.perfetto.dev, and manifest.json with the SHA-256 of each file.\n" +
			"Only you may read DIR: events.jsonl has payloads, results and lease tokens in it; --no-bodies leaves " +
			"out payloads and results. The report quotes error details.\n" +
			"With --window-only, events.jsonl has only the events from --from on: in a long ledger that is much " +
			"faster, but no ledger can be made of it.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "from `TIME` on, or pos:N", Required: true},
			&cli.StringFlag{Name: "to", Usage: "up to `TIME`, or pos:N", Required: true},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true,
				Usage: "the folder `DIR`; it must be new or empty"},
			&cli.BoolFlag{Name: "no-bodies", Usage: "without payloads, results and salts", DisableDefaultText: true},
			&cli.BoolFlag{Name: "window-only", Usage: "events.jsonl without the events before --from",
				DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger incident --from 02:00 --to 04:30 -o bad-night", "then attach the folder"},
			{"jobledger incident --from pos:4711 --to pos:5200 -o deploy --no-bodies",
				"by places in the ledger, and without payloads"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict},
		Run:   p.incident,
	})
}

func (p *Verbs) incident(c *cli.Context) error {
	// A signal must not leave the temporary folder.
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.String("output") == "" {
		return cli.Usagef("--output is empty")
	}
	folder := incident.FolderOptions{Path: filepath.Clean(c.String("output")), Actor: p.Actor,
		Program: cli.ProgramName + " " + buildinfo.Read().String(),
		Bodies:  !c.Bool("no-bodies"), WindowOnly: c.Bool("window-only")}
	if err := incident.CheckFree(folder.Path); err != nil {
		return folderError(err)
	}
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	w, err := ledger.Read(ctx, service.Store, func(tx *ledger.Tx) (export.Window, error) {
		return jobverb.Window(p.Program, c, tx)
	})
	switch {
	case err != nil:
		return err
	case w.To.Before(w.From):
		return cli.Usagef("--to is before --from")
	case w.Empty():
		return cli.Exitf(cli.ExitNothing, "nothing happened between --from and --to")
	}
	bar := p.StartProgress("incident", -1)
	folder.Now, folder.Progress = p.Now(), bar.Add
	manifest, err := incident.WriteFolder(ctx, service.Store, w, folder)
	bar.Done()
	if err != nil {
		return folderError(err)
	}
	return p.JSONOrLine(manifest, filepath.Join(folder.Path, "report.md"))
}

// folderError adds an exit code and a hint to an error about the folder.
func folderError(err error) error {
	taken, ok := errors.AsType[*incident.TakenError](err)
	switch {
	case !ok:
		return err
	case taken.NotEmpty:
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%w", err), "give -o the name of a new folder")
	}
	return cli.Exitf(cli.ExitConflict, "%w", err)
}
