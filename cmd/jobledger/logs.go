package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"time"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/logcheck"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// logsVerb shows what a command under work wrote.
func logsVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "logs", Group: cli.GroupSee, Usage: "show what a job's command wrote",
		About: "'jobledger work' keeps what each attempt writes to stdout and stderr in a folder next to the " +
			"ledger, of a flood the beginning and the end. With a ledger in PostgreSQL that is a folder of the " +
			"worker's user on the worker's host, $XDG_STATE_HOME/jobledger/DATABASE or " +
			"~/.local/state/jobledger/DATABASE, and only there they can be shown. Nothing removes these files but " +
			"you. On a terminal, control characters are escaped.\n" +
			"When the attempt has ended by its worker, what is shown is compared with the digest in its event: " +
			"a file that is not what the command wrote is shown, and said to differ, with exit code 8.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{
			cli.WholeFlag("attempt", "what attempt `N` wrote", 0, 1, math.MaxInt, "the latest"),
			&cli.BoolFlag{Name: "stderr", Usage: "what it wrote to stderr, not stdout"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the attempt ends"},
		},
		Examples: []cli.Example{
			{"jobledger logs 01KDY9FY88 --stderr", "what the latest attempt wrote to stderr"},
			{"jobledger logs 01KDY9FY88 -f", "watch one that runs"},
			{"jobledger logs 01KDY9FY88 --attempt 1 | less", "an earlier one"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob, cli.ExitDiscrepancy},
		Run: func(c *cli.Context) error {
			if p.JSON && c.Bool("follow") {
				return cli.Usagef("--follow prints the output as it comes, --json prints it as a whole: they exclude " +
					"each other")
			}
			return p.logs(c)
		},
	})
}

// output is one stream of one attempt.
type output struct {
	job     projection.Job
	attempt int
	stderr  bool
	path    string
	server  bool // the ledger is on one, and the worker's host may be another one than this
}

func (p *program) logs(c *cli.Context) error {
	ref, _, err := jobref.OneFromLine(c)
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	o := output{attempt: c.Int("attempt"), stderr: c.Bool("stderr")}
	if o.job, err = ref.Read(c.Context, service); err != nil {
		return err
	}
	switch {
	case o.job.Attempt == 0:
		return cli.Exitf(cli.ExitNothing, "job %s has not been claimed yet", o.job.ID)
	case o.attempt > o.job.Attempt:
		return cli.Exitf(cli.ExitNothing, "job %s is at attempt %d", o.job.ID, o.job.Attempt)
	case o.attempt == 0:
		o.attempt = o.job.Attempt
	}
	folder, err := cli.LogFolder(service.Store.Path())
	if err != nil {
		return err
	}
	o.path, o.server = worker.LogFile(folder, o.job.ID, o.attempt, o.stderr), ledger.IsServerAddress(p.DB)
	if c.Bool("follow") {
		return p.followOutput(c.Context, service, o)
	}
	text, err := os.ReadFile(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.noOutput(c.Context, service, o)
	case err != nil:
		return err
	}
	logged, state, err := o.check(c.Context, service, bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.PrintJSON(o.json(text, state))
	} else {
		err = p.PrintRaw(text)
	}
	if err != nil {
		return err
	}
	return o.differs(logged, state, int64(len(text)))
}

// logged returns what the event at the end of the attempt says, and the job's salt.
func (o output) logged(ctx context.Context, service *commands.Service) (logged worker.LoggedStream,
	salt []byte,
	err error) {
	err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
		end, err := logcheck.End(ctx, tx, o.job.N, o.attempt)
		if logged = worker.StreamOf(end, o.stderr); err != nil || logged.SHA256 == "" {
			return err
		}
		salt, _, _, err = tx.Body(ctx, o.job.N)
		return err
	})
	return logged, salt, err
}

// check compares what is shown with the event at the end of the attempt.
func (o output) check(ctx context.Context, service *commands.Service, file io.ReaderAt, size int64) (
	logged worker.LoggedStream, state worker.LogState, err error) {
	logged, salt, err := o.logged(ctx, service)
	if err == nil {
		state, err = logged.Check(file, size, salt)
	}
	return logged, state, err
}

// differs is the error of a file that is not what the command wrote.
func (o output) differs(logged worker.LoggedStream, state worker.LogState, size int64) error {
	if state != worker.LogDiffers {
		return nil
	}
	err := cli.Exitf(cli.ExitDiscrepancy,
		"this is not the %s of attempt %d of job %s: the command wrote %s, and "+
			"%s has %s that differ", o.stream(), o.attempt, o.job.ID, render.Count(logged.Bytes, "byte"), o.path,
		render.Count(size, "byte"))
	return cli.WithHint(err,
		"it was overwritten or cut off, or the disk was full; 'jobledger history %s --json' has "+
			"the digest, 'jobledger verify --logs' checks all files", o.job.ID)
}

// noOutput is the error of an attempt without a file; if its event says that there was one, it says so.
func (p *program) noOutput(ctx context.Context, service *commands.Service, o output) error {
	logged, _, err := o.logged(ctx, service)
	if err != nil {
		return err
	}
	err = o.nothing()
	if logged.SHA256 != "" && !o.server {
		err = cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", errors.Unwrap(err)),
			"the command wrote %s: the file was removed, or is on another host", render.Count(logged.Bytes, "byte"))
	}
	return err
}

func (o output) stream() string {
	if o.stderr {
		return "stderr"
	}
	return "stdout"
}

// nothing is the error of an attempt without a file.
func (o output) nothing() error {
	err := cli.Exitf(cli.ExitNothing, "there is no %s of attempt %d of job %s", o.stream(), o.attempt, o.job.ID)
	if o.server {
		err = cli.Exitf(cli.ExitNothing, "on this host, %s, there is no %s of attempt %d of job %s: no %s",
			cli.Hostname("which has no name"), o.stream(), o.attempt, o.job.ID, o.path)
		return cli.WithHint(err, "look on the host where it ran, as the worker's user: 'jobledger attempts --job "+
			"%s' says which; or it wrote nothing, or ran with --no-capture", o.job.ID)
	}
	return cli.WithHint(err, "it wrote nothing, or was no command of 'jobledger work' with this ledger, or "+
		"ran with --no-capture; "+
		"'jobledger history %s' knows more", o.job.ID)
}

// json is o as --json prints it.
func (o output) json(text []byte, state worker.LogState) any {
	out := struct {
		Job        event.JobID `json:"job"`
		Attempt    int         `json:"attempt"`
		Stream     string      `json:"stream"`
		Path       string      `json:"path"`
		Text       *string     `json:"text"`
		TextBase64 *string     `json:"text_base64"` // instead of text where that is not UTF-8
		ID         event.JobID `json:"id"`          // of the job, too
		Check      string      `json:"check"`       // whole, cut, size_only, differs or unchecked
	}{Job: o.job.ID, ID: o.job.ID, Attempt: o.attempt, Stream: o.stream(), Path: o.path, Check: string(state)}
	out.Text, out.TextBase64 = render.BytesOrNull(text)
	return out
}

// goesOn reports whether the attempt has not ended.
func (o output) goesOn(ctx context.Context, service *commands.Service) (held bool, err error) {
	err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
		j, _, err := projection.Get(ctx, tx, o.job.ID)
		held = j.State.Held() && j.Attempt == o.attempt
		return err
	})
	return held, err
}

// followOutput prints what is written until the attempt ends. It asks whether it has before it reads, so that
// the last words are not missed.
func (p *program) followOutput(ctx context.Context, service *commands.Service, o output) error {
	const look = 100 * time.Millisecond
	var file *os.File
	var read int64
	var rest []byte // the beginning of a character whose end has not come
	for {
		goesOn, err := o.goesOn(ctx, service)
		if err != nil {
			return err
		}
		if file == nil {
			switch file, err = os.Open(o.path); {
			case errors.Is(err, fs.ErrNotExist):
				file = nil
			case err != nil:
				return err
			default:
				defer file.Close()
			}
		}
		if file != nil {
			if rest, read, err = p.printNew(file, rest, read); err != nil {
				return err
			}
		}
		if !goesOn {
			if file == nil {
				return p.noOutput(ctx, service, o)
			}
			if err := p.PrintRaw(rest); err != nil {
				return err
			}
			logged, state, err := o.check(ctx, service, file, read)
			if err != nil {
				return err
			}
			return o.differs(logged, state, read)
		}
		if err := p.Flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// printNew prints what file holds after read. Where that is less than before, its middle was left out since:
// then it goes on at the end, of which an unknown part has been printed.
func (p *program) printNew(file *os.File, rest []byte, read int64) ([]byte, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, read, err
	}
	if info.Size() < read {
		if err := p.Flush(); err != nil {
			return nil, read, err
		}
		p.Message("more than is kept: something is left out here")
		return rest, info.Size(), nil
	}
	text, err := io.ReadAll(io.NewSectionReader(file, read, info.Size()-read))
	if err != nil {
		return nil, read, err
	}
	read += int64(len(text))
	whole, rest := splitRune(append(rest, text...))
	return rest, read, p.PrintRaw(whole)
}

// splitRune cuts off the beginning of a character at the end of b: escaped alone, it would be no
// character.
func splitRune(b []byte) (whole, rest []byte) {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i], b[i:]
			}
			break
		}
	}
	return b, nil
}
