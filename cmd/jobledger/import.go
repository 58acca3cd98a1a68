package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// importVerb takes in what export has written.
func importVerb(p *program) verb {
	return verb{
		name: "import", group: groupLedger, usage: "make a ledger of an exported history",
		about: "FILE is what 'jobledger export' wrote, from the first event on; - is standard input. The ledger of --db must not be there " +
			"yet, or have no events. Ids, times, tokens and payloads stay as they were; the last event then says that all was imported. " +
			"Every line, every transition and every digest is checked, and unless all is right nothing is written.\n" +
			"A history without payloads can be taken in to be looked at; its queues are paused then, so that no job runs without its payload. " +
			"It is also how a ledger gets from a file into PostgreSQL, and back.",
		args: "FILE | -", minArgs: 1, maxArgs: 1,
		examples: []example{
			{"jobledger import night.jsonl --db night.db", "look at somebody else's ledger"},
			{"jobledger export | jobledger import - --db copy.db && jobledger verify --db copy.db", "the same ledger once more"},
			{"jobledger export | jobledger import - --db postgres://app@db.example/jobs", "the same in PostgreSQL; stop the workers before"},
		},
		exits: []int{exitNothing, exitConflict, exitBusy},
		run:   p.importHistory,
	}
}

func (p *program) importHistory(c *cli.Context) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // or the unfinished file would stay
	defer stop()
	name := c.Args().First()
	if name == "" {
		return usagef("FILE is empty")
	}
	content, done, err := p.reread("import", name)
	if err != nil {
		return err
	}
	defer done()
	defer collectLess()()
	loaded, path, err := p.importInto(ctx, name, content)
	if line, ok := errors.AsType[*commands.LineError](err); ok || errors.Is(err, projection.ErrIllegal) {
		if ok {
			err = line
		}
		return withHint(usagef("%s", plainly(err)), "nothing was written")
	}
	if errors.Is(err, commands.ErrNotEmpty) {
		return withHint(exitf(exitConflict, "%s has events already; it was not touched", shown(p.db)), "%s", p.newLedger())
	}
	if err != nil {
		return err
	}
	if loaded.Missing > 0 {
		p.message("%d payloads and results that the history names are not in it", loaded.Missing)
	}
	if len(loaded.Paused) > 0 {
		p.message("paused, because jobs there have no payload: %s", strings.Join(loaded.Paused, ", "))
	}
	if p.json {
		return p.printJSON(struct {
			DB      string `json:"db"`
			Events  int64  `json:"events"`
			Jobs    int64  `json:"jobs"`
			Missing int64  `json:"missing_bodies"`
		}{path, loaded.Events, loaded.Jobs, loaded.Missing})
	}
	return p.printLine(fmt.Sprintf("%s: %s of %s imported", path, count(loaded.Events, "event"), count(loaded.Jobs, "job")))
}

// importInto writes into a ledger without events in one transaction; where there is no ledger, beside that place.
func (p *program) importInto(ctx context.Context, from string, content *io.SectionReader) (loaded commands.Loaded, path string, err error) {
	if content.Size() == 0 {
		return loaded, "", withHint(exitf(exitNothing, "there is no event in %s", from), "nothing was written")
	}
	bar := p.startProgress("import", -1)
	defer bar.done()
	told := int64(0)
	progress := func(events int64) {
		if events < told { // once more, from the beginning
			told = 0
		}
		bar.add(int(events - told))
		told = events
	}
	lines := historyLines(content)
	path, options := pathOf(p.db)
	_, statErr := os.Lstat(path)
	switch service, err := p.open(ctx); {
	case err == nil:
		defer service.Store.Close()
		loaded, err = service.Import(ctx, p.actor, from, lines, progress)
		return loaded, shown(path), err
	case !errors.Is(err, ledger.ErrNoLedger):
		return loaded, "", err
	case ledger.IsServerAddress(p.db) || !errors.Is(statErr, fs.ErrNotExist): // a database without one, or an empty file
		service, err := p.openOrCreate(ctx)
		if err != nil {
			return loaded, "", err
		}
		defer service.Store.Close()
		loaded, err = service.Import(ctx, p.actor, from, lines, progress)
		return loaded, shown(path), err
	}
	u, err := p.startLedger(ctx, path, options)
	if err != nil {
		return loaded, "", err
	}
	defer u.discard()
	if loaded, err = u.Import(ctx, p.actor, from, lines, progress); err != nil {
		return loaded, "", err
	}
	return loaded, path, u.finish()
}

// newLedger is what to do where a ledger has events.
func (p *program) newLedger() string {
	if ledger.IsServerAddress(p.db) {
		return "give --db another database, or with ?schema=NAME another schema of this one"
	}
	return "give --db the name of a new ledger"
}

// pathOf takes a DSN of --db apart.
func pathOf(dsn string) (path, options string) {
	path, isURL := strings.CutPrefix(dsn, "sqlite:")
	if isURL {
		path, options, _ = strings.Cut(path, "?")
	}
	return path, options
}

const maxHistoryLine = 16 << 20 // bytes; a body of 1 MiB takes six times that where each byte is written as \u0000

// historyLines reads an export, from the beginning each time it is ranged over.
func historyLines(content *io.SectionReader) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		lines := bufio.NewScanner(io.NewSectionReader(content, 0, content.Size()))
		lines.Buffer(make([]byte, 64<<10), maxHistoryLine)
		for n := 1; lines.Scan(); n++ {
			text := lines.Bytes()
			if n == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff"))
			}
			var line ledger.Line
			if err := line.UnmarshalJSON(text); err != nil {
				err = whyNot(text, err)
				if !lines.Scan() && !endsInLineFeed(content) {
					err = fmt.Errorf("%w; the file seems to be cut off", err)
				}
				yield(line, err)
				return
			}
			if !yield(line, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("longer than 16 MiB")
		}
		if err != nil {
			yield(ledger.Line{}, err)
		}
	}
}

// whyNot says it in the words of somebody who has a file before them, not a ledger.
func whyNot(text []byte, err error) error {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return errors.New("it is empty")
	case text[0] != '{':
		return errors.New("not a JSON object; what is wanted is the JSONL of 'jobledger export'")
	}
	return errors.New(plainly(err))
}

func endsInLineFeed(content *io.SectionReader) bool {
	last := make([]byte, 1)
	_, err := content.ReadAt(last, content.Size()-1)
	return err == nil && last[0] == '\n'
}

// plainly is err without the words that only say which package found it.
func plainly(err error) string {
	text := err.Error()
	for _, sentinel := range []error{ledger.ErrDamaged, ledger.ErrConflict, projection.ErrIllegal} {
		text = strings.Replace(text, sentinel.Error()+": ", "", 1)
	}
	return text
}
