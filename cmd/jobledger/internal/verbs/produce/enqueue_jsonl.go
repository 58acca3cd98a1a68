package produce

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
)

// enqueueLines enqueues the jobs of the file that flag, jsonl or lines, names. It is read twice: everything
// is checked before anything is written, and no file is too large for the memory.
func (p *Verbs) enqueueLines(c *cli.Context, flag string, defaults commands.Enqueue) error {
	plain := flag == "lines"
	switch {
	case c.IsSet("jsonl") && plain:
		return cli.Usagef("--lines and --jsonl cannot be combined")
	case c.Args().Present():
		return cli.Usagef("--%s and PAYLOAD cannot be combined: the payload stands in each line", flag)
	case defaults.Key != "" && plain:
		return cli.Usagef("--lines and --key cannot be combined: a key is that of one job")
	case defaults.Key != "":
		return cli.Usagef("--jsonl and --key cannot be combined: the key stands in each line")
	case defaults.Queue == "" && plain:
		return cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("enqueue"))
	}
	name := c.String(flag)
	content, done, err := p.OpenInput("--"+flag, name)
	if err != nil {
		return err
	}
	defer done()
	lines := joblines.Reader{Defaults: defaults, Now: p.Now(), Names: joblines.NewNames(), Refresh: true,
		Plain: plain, Null: c.Bool("null")}
	p.ReparseTimes = func() {
		lines.Now = p.Now()
		lines.Defaults.RunAt, _, _ = jobverb.RunAt(p.Program, c)
	}

	total, err := p.checkLines(c, lines, content)
	if err != nil {
		code, why, hint := fault.Explain(err)
		return &cli.Error{Code: code, Err: errors.New(why), Hint: strings.TrimSuffix("nothing was enqueued; "+hint,
			"; ")}
	}
	if total == 0 {
		p.Message("there is no job in --%s %s", flag, name)
		return nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, service, closeLedger, err := p.ledgerOf(c)
	if err != nil {
		return err
	}
	defer closeLedger()
	lines.Names, lines.Refresh = joblines.NewNames(), service != nil // a server may be an older one
	if err := readDependencies(c, service, &lines.Defaults); err != nil {
		return err
	}
	bar := (*cli.Progress)(nil)
	if !p.StdoutTerminal { // there the ids themselves show how it goes
		bar = p.StartProgress("enqueue", int64(total))
	}
	defer bar.Done()
	written, existing, replaced, while := 0, 0, 0, false
	var conflicts []string
	for chunk, err := range lines.Chunks(content) {
		if err != nil {
			return err
		}
		answers, err := to.Enqueue(c.Context, p.Actor, chunk.Jobs...)
		if err != nil {
			bar.Done()
			code, why, _ := fault.Explain(err)
			return &cli.Error{Code: code, Err: fmt.Errorf("lines %d to %d: %s", chunk.First(), chunk.Last(), why),
				Hint: fmt.Sprintf("%s of the lines before %s enqueued, with the id printed",
					words.Count(int64(written), "job"), words.Plural(int64(written), "is", "are"))}
		}
		lines.Names.Found(chunk, answers)
		for i, answer := range answers {
			if answer.Existing {
				existing++
				while = while || chunk.Jobs[i].UniqueWhile != ""
			}
			if answer.Replaced {
				replaced++
			}
			if answer.Left && chunk.Replace[i] {
				conflicts = append(conflicts, fmt.Sprintf("line %d: key %q is job %s already; it is %s, and keeps its "+
					"payload", chunk.Lines[i], chunk.Jobs[i].Key, answer.ID, answer.State))
			}
			_ = p.printEnqueued(answer) // Flush returns the error
		}
		if err := p.Flush(); err != nil { // even if a reader went away: here it does not mean that all is done
			bar.Done()
			return cli.Exitf(cli.ExitUnexpected, "print the ids of lines %d to %d: %w; these jobs and those before "+
				"are enqueued", chunk.First(), chunk.Last(), err)
		}
		written += len(answers)
		bar.Add(len(answers))
	}
	bar.Done()
	if existing > 0 {
		same := "the same key and payload"
		if while {
			same = "the same key"
		}
		p.Message("%d of %s %s there already, with %s", existing, words.Count(int64(written), "job"),
			words.Plural(int64(existing), "was", "were"), same)
	}
	if replaced > 0 {
		p.Message("%s replaced", words.Count(int64(replaced), "payload"))
	}
	if len(conflicts) == 0 {
		return nil
	}
	for _, text := range conflicts {
		p.Message("%s", text)
	}
	return cli.WithHint(cli.Exitf(cli.ExitConflict, "%d of %s not replaced, since the job has begun; all "+
		"else is done", len(conflicts), words.Count(int64(written), "payload")),
		"\"on_duplicate\": \"refresh\" takes that for success")
}

// checkLines returns how many jobs the lines have, or what is wrong with the first bad one. It writes
// nothing.
func (p *Verbs) checkLines(c *cli.Context, lines joblines.Reader, content io.Reader) (total int,
	err error) {
	client, err := p.Remote(c)
	if err != nil {
		return 0, err
	}
	if client != nil {
		_ = client.Close()
		return lines.Check(c.Context, content, nil, func(int) {})
	}
	service, err := p.Open(c.Context)
	switch {
	case err == nil:
		defer service.Store.Close()
	case !errors.Is(err, ledger.ErrNoLedger): // it will be made
		return 0, err
	}
	bar := p.StartProgress("check", -1)
	defer bar.Done()
	return lines.Check(c.Context, content, service, bar.Add)
}
