package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/incident"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
)

// incidentVerb collects what a post-mortem needs.
func incidentVerb(p *program) cli.Verb {
	return cli.Verb{
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
				Usage: "the folder `DIR`, which must not exist or be empty"},
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
	}
}

func (p *program) incident(c *cli.Context) error {
	// A signal must not leave the temporary folder.
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c.String("output") == "" {
		return cli.Usagef("--output is empty")
	}
	target := filepath.Clean(c.String("output"))
	if err := requireFreeFolder(target); err != nil {
		return err
	}
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var w export.Window
	err = service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		w, err = p.windowOf(c, tx)
		return err
	})
	switch {
	case err != nil:
		return err
	case w.To.Before(w.From):
		return cli.Usagef("--to is before --from")
	case w.Empty():
		return cli.Exitf(cli.ExitNothing, "nothing happened between --from and --to")
	}
	// MkdirTemp makes a folder that only its owner may read.
	folder, err := os.MkdirTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) // unless it has its name by then
	build, _ := debug.ReadBuildInfo()
	m := &manifest{
		Format: 1, Program: readBuild(build).String(), CreatedAt: render.JSONTime(p.Now()), CreatedBy: p.Actor,
		From: render.JSONTime(w.From), To: render.JSONTime(w.To), FirstEvent: w.After + 1, LastEvent: w.Until,
		Bodies: !c.Bool("no-bodies"), WindowOnly: c.Bool("window-only"), folder: folder,
	}
	if err := p.writeIncident(ctx, service.Store, w, m); err != nil {
		return err
	}
	if err := moveFolder(folder, target); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(m)
	}
	return p.PrintLine(filepath.Join(target, "report.md"))
}

// writeIncident writes the files of the folder and their manifest.
func (p *program) writeIncident(ctx context.Context, store *ledger.Store, w export.Window,
	m *manifest) error {
	bar := p.StartProgress("incident", -1)
	defer bar.Done()
	report, err := incident.Investigate(ctx, store, w, p.Now())
	if err != nil {
		return err
	}
	report.WindowOnly = m.WindowOnly
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"report.md", report.WriteMarkdown},
		{"depth.svg", report.Depth.WriteSVG},
		{"events.jsonl", func(out io.Writer) error {
			options := export.LinesOptions{Bodies: m.Bodies, Progress: bar.Add}
			events := export.Window{Until: w.Until} // from the first event on, so that it can be imported
			if m.WindowOnly {
				events = w
			}
			_, err := export.Lines(ctx, store, events, options, out)
			return err
		}},
		{"attempts.csv", func(out io.Writer) error { return export.CSV(ctx, store, w, out) }},
		{"trace.json", func(out io.Writer) error { return export.Trace(ctx, store, w, out) }},
	} {
		if err := m.add(file.name, file.write); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.folder, "manifest.json"), append(text, '\n'), 0o600)
}

// requireFreeFolder refuses a path where there is anything but an empty folder.
func requireFreeFolder(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return cli.Exitf(cli.ExitConflict, "%s is there and is no folder; it was not touched", path)
	case err != nil:
		return err
	case len(entries) > 0:
		return cli.WithHint(cli.Exitf(cli.ExitConflict, "%s is not empty; it was not touched", path),
			"give -o the name of a new folder")
	}
	return nil
}

// moveFolder renames folder to target. It replaces an empty folder there and nothing else.
func moveFolder(folder, target string) error {
	// os.Remove would remove a file
	if err := syscall.Rmdir(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return cli.Exitf(cli.ExitConflict, "%s: %w; it was not touched", target, err)
	}
	if err := os.Rename(folder, target); err != nil {
		return err
	}
	return ledger.SyncFolder(filepath.Dir(target))
}

// manifest describes the files of the folder.
type manifest struct {
	Format     int            `json:"format"`
	Program    string         `json:"program"`
	CreatedAt  string         `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	From       string         `json:"from"`
	To         string         `json:"to"`
	FirstEvent int64          `json:"first_event"` // of the incident
	LastEvent  int64          `json:"last_event"`
	Bodies     bool           `json:"bodies"`
	WindowOnly bool           `json:"window_only,omitempty"` // events.jsonl begins with FirstEvent, not 1
	Files      []manifestFile `json:"files"`

	folder string
}

type manifestFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// add makes a file of what write writes, and notes its size and digest.
func (m *manifest) add(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(m.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, hash), 64<<10)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	m.Files = append(m.Files, manifestFile{name, size, hex.EncodeToString(hash.Sum(nil))})
	return f.Close()
}
