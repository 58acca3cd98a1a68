package maintain

import (
	"jobledger/cmd/jobledger/internal/archived"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/jobfilter"
	"jobledger/cmd/jobledger/internal/terminal"
	"jobledger/ledger"
)

// Export writes the history for other programs.
func (p *Verbs) Export() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "export", Group: cli.GroupLedger,
		Usage: "write the history as JSON lines, CSV or a trace to standard output",
		About: "jsonl: an event a line, as 'events --json' has it, with the bytes of its payload or result " +
			"and the salt of their digests; from the first event on, 'jobledger import' makes the same ledger " +
			"of it. csv: a row for each claim, in the order in which they ended. " +
			"trace: Chrome's trace format, which ui.perfetto.dev opens: a lane for each worker process, a slice for " +
			"each claim, an arrow where a job changed workers.\n" +
			"--from and --to include the moment that they name, a time or pos:N; of claims, those that were live at " +
			"some time between them. Payloads may be secret: --no-bodies leaves out payloads, results and salts. " +
			"Others may work meanwhile.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "at or before `TIME`"},
			&cli.StringFlag{Name: "format", Usage: "`FORM` is jsonl, csv or trace", Value: "jsonl",
				DefaultText: "jsonl"},
			&cli.BoolFlag{Name: "no-bodies", Usage: "without payloads, results and salts", DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger export >all.jsonl", "everything; 'jobledger import all.jsonl --db other.db' takes it in"},
			{"jobledger export --from 02:00 --to 04:30 --format trace >night.json",
				"open it at https://ui.perfetto.dev"},
			{"jobledger export --from -7d --format csv >attempts.csv", "a week's claims for a spreadsheet"},
		},
		Complete: map[string][]string{"format": {"jsonl", "csv", "trace"}},
		Run:      p.export,
	})
}

func (p *Verbs) export(c *cli.Context) error {
	format := c.String("format")
	if format != "jsonl" && format != "csv" && format != "trace" {
		return cli.Usagef("--format: %q is not jsonl, csv or trace", format)
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var window export.Window
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		window, err = jobfilter.Window(p.Program, c, tx)
		return err
	})
	if err != nil {
		return err
	}
	switch format {
	case "csv":
		return export.CSV(c.Context, service.Store, window, p.Stdout)
	case "trace":
		return export.Trace(c.Context, service.Store, window, p.Stdout)
	}
	bar := (*terminal.Progress)(nil)
	if !p.StdoutTerminal {
		bar = p.StartProgress("export", max(window.Until-window.After, 0))
	}
	defer bar.Done()
	options := export.LinesOptions{Bodies: !c.Bool("no-bodies"), Progress: bar.Add}
	_, err = export.Lines(c.Context, service.Store, window, options, p.Stdout)
	return err
}
