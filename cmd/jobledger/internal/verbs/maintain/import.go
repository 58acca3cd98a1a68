package maintain

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/load"
)

// Import makes a ledger of an exported history.
func (p *Verbs) Import() cli.Verb {
	return cli.Verb{
		Name: "import", Here: true, Group: cli.GroupLedger, Usage: "make a ledger of an exported history",
		About: "FILE is the output of 'jobledger export', from the first event on; - is standard input. The " +
			"ledger of --db must be missing or have no events. Ids, times, tokens and payloads stay as they were. " +
			"The last event records the import. Every line, every transition and every digest is checked; if " +
			"'verify' would find anything in the result, the line is named and nothing is written.\n" +
			"A history without payloads can be imported to read it. Its queues are paused, so that no job runs " +
			"without its payload. Use export and import to move a ledger from a file to PostgreSQL, and back.",
		Args: "FILE | -", MinArgs: 1, MaxArgs: 1,
		Examples: []cli.Example{
			{"jobledger import night.jsonl --db night.db", "read the ledger of another machine"},
			{"jobledger export | jobledger import - --db copy.db && jobledger verify --db copy.db",
				"a copy of the ledger"},
			{"jobledger export | jobledger import - --db postgres://app@db.example/jobs",
				"a copy in PostgreSQL; stop the workers before"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitBusy},
		Run:   p.importHistory,
	}
}

func (p *Verbs) importHistory(c *cli.Context) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
	defer stop()
	name := c.Args().First()
	if name == "" {
		return cli.Usagef("FILE is empty")
	}
	content, done, err := p.OpenInput("import", name)
	if err != nil {
		return err
	}
	defer done()
	path, _ := cli.SplitDSN(p.DB)
	total := int64(-1)
	if p.StderrTerminal {
		total = files.CountLines(content)
	}
	bar := p.StartProgress("import and last check", total)
	loaded, err := files.Import(ctx, content,
		files.ImportOptions{DSN: p.DB, From: name, Actor: p.Actor, Progress: bar.To()})
	bar.Done()
	if err != nil {
		return p.importError(err)
	}
	path = cli.DisplayDSN(path)
	if loaded.Missing > 0 {
		p.Message("%d %s that the history names %s not in it", loaded.Missing,
			words.Plural(loaded.Missing, "payload or result", "payloads and results"),
			words.Plural(loaded.Missing, "is", "are"))
	}
	if len(loaded.Paused) > 0 {
		p.Message("paused, because jobs there have no payload: %s", strings.Join(loaded.Paused, ", "))
	}
	return p.JSONOrLine(struct {
		DB      string `json:"db"`
		Events  int64  `json:"events"`
		Jobs    int64  `json:"jobs"`
		Missing int64  `json:"missing_bodies"`
	}{path, loaded.Events, loaded.Jobs, loaded.Missing}, fmt.Sprintf("%s: %s of %s imported",
		path, words.Count(loaded.Events, "event"), words.Count(loaded.Jobs, "job")))
}

// importError adds exit codes and hints to the errors of files.Import.
func (p *Verbs) importError(err error) error {
	switch {
	case errors.Is(err, files.ErrEmpty):
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", err), "nothing was written")
	case errors.Is(err, files.ErrBadHistory):
		return cli.WithHint(cli.Usagef("%w", err), "nothing was written")
	case errors.Is(err, load.ErrNotEmpty):
		err := cli.Exitf(cli.ExitConflict, "%s has events already; it was not touched", cli.DisplayDSN(p.DB))
		return cli.WithHint(err, "%s", p.NewLedgerHint())
	}
	return stagingError(err, p.DB)
}
