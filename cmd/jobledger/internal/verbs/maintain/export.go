package maintain

import (
	"slices"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/ledger"
)

// Export writes the history for other programs.
func (p *Verbs) Export() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "export", Group: cli.GroupLedger,
		Usage: "write the history as JSON lines, CSV, a trace or spans to standard output",
		About: "jsonl: an event a line, as 'events --json' has it, with the bytes of its payload or result " +
			"and the salt of their digests; from the first event on, 'jobledger import' makes the same ledger " +
			"of it. csv: a row for each claim, in the order in which they ended. " +
			"trace: Chrome's trace format, which ui.perfetto.dev opens: a lane for each worker process, a slice for " +
			"each claim, an arrow where a job changed workers. " +
			"otlp: OpenTelemetry spans, as lines of up to 256, each a request for the address /v1/traces of a " +
			"collector: a span for each job that was enqueued, claim that ended and write that was refused. A job " +
			"is a trace, or its spans are of the trace in its tag traceparent; a queue is a service.\n" +
			"--from and --to include the moment that they name, a time or pos:N; of claims, those that were live at " +
			"some time between them; of spans, those that ended between them, so that windows that adjoin have each " +
			"span once. Payloads may be secret: --no-bodies leaves out payloads, results and salts. " +
			"Others may work meanwhile.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "at or before `TIME`"},
			&cli.StringFlag{Name: "format", Usage: "`FORM` is " + export.FormatWords, Value: "jsonl",
				DefaultText: "jsonl"},
			&cli.BoolFlag{Name: "no-bodies", Usage: "without payloads, results and salts", DisableDefaultText: true},
		},
		Examples: []cli.Example{
			{"jobledger export >all.jsonl", "everything; 'jobledger import all.jsonl --db other.db' takes it in"},
			{"jobledger export --from 02:00 --to 04:30 --format trace >night.json",
				"open it at https://ui.perfetto.dev"},
			{"jobledger export --from -1h --format otlp | split -l 1 --filter=\"curl -fsS -d @- " +
				"-H 'Content-Type: application/json' http://localhost:4318/v1/traces\"",
				"send the spans of the last hour to a collector, a request for each line"},
			{"jobledger export --from -7d --format csv >attempts.csv", "a week's claims for a spreadsheet"},
		},
		Complete: map[string][]string{"format": export.Formats},
		Run:      p.export,
	})
}

func (p *Verbs) export(c *cli.Context) error {
	format := c.String("format")
	if !slices.Contains(export.Formats, format) {
		return cli.Usagef("--format: %q is not %s", format, export.FormatWords)
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	window, err := ledger.Read(c.Context, service.Store, func(tx *ledger.Tx) (export.Window, error) {
		return jobverb.Window(p.Program, c, tx)
	})
	if err != nil {
		return err
	}
	if write := export.ClaimsIn(format); write != nil {
		return write(c.Context, service.Store, window, p.Stdout)
	}
	bar := (*cli.Progress)(nil)
	if !p.StdoutTerminal {
		bar = p.StartProgress("export", max(window.Until-window.After, 0))
	}
	defer bar.Done()
	options := export.LinesOptions{Bodies: !c.Bool("no-bodies"), Progress: bar.Add}
	_, err = export.Lines(c.Context, service.Store, window, options, p.Stdout)
	return err
}
