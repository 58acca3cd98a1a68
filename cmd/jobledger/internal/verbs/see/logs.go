package see

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// Logs shows what a command under work wrote.
func (p *Verbs) Logs() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "logs", Group: cli.GroupSee, Usage: "show what a job's command wrote",
		About: "'jobledger work' keeps what each attempt writes to stdout and stderr in a folder next to the " +
			"ledger, of a flood the beginning and the end. With a ledger in PostgreSQL that is a folder of the " +
			"worker's user on the worker's host, $XDG_STATE_HOME/jobledger/DATABASE or " +
			"~/.local/state/jobledger/DATABASE, and only there they can be shown. Nothing removes these files but " +
			"you, and 'archive' with --logs remove; those of an archived job are shown, and compared with " +
			"nothing. On a terminal, control characters are escaped.\n" +
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

func (p *Verbs) logs(c *cli.Context) error {
	ref, _, err := jobverb.RefOf(c)
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	o := logs.Output{Attempt: c.Int("attempt"), Stderr: c.Bool("stderr")}
	o.Job, err = ref.Read(c.Context, service)
	left := errors.Is(err, commands.ErrNoJob)
	if left {
		o.Job, err = archived.Job(c.Context, service, ref, err)
	}
	if err != nil {
		return err
	}
	switch {
	case o.Job.Attempt == 0:
		return cli.Exitf(cli.ExitNothing, "job %s has not been claimed yet", o.Job.ID)
	case o.Attempt > o.Job.Attempt:
		return cli.Exitf(cli.ExitNothing, "job %s is at attempt %d", o.Job.ID, o.Job.Attempt)
	case o.Attempt == 0:
		o.Attempt = o.Job.Attempt
	}
	folder, err := logs.Folder(service.Store.Path())
	if err != nil {
		return err
	}
	o.Folder = folder
	var checked logs.Checked
	if c.Bool("follow") && !left {
		checked, err = o.Follow(c.Context, service.Store, p.printNew)
	} else {
		checked, err = p.printOutput(c.Context, service, o)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && left:
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "there is no %s of attempt %d of job %s, which is archived",
			o.Stream(), o.Attempt, o.Job.ID), "'archive --logs remove', or 'logs remove' in the policy, removes it "+
			"with the job; 'jobledger history %s' has its digest", o.Job.ID)
	case errors.Is(err, fs.ErrNotExist):
		return p.noOutput(c.Context, service, o)
	case err != nil:
		return err
	case checked.State == attemptlog.Differs:
		return differs(o, checked)
	case checked.Lacks > 0:
		p.Message("these are %d of the %s that the command wrote: the worker could not keep the others, as on a "+
			"full disk", checked.Size, words.Count(checked.Logged.Bytes, "byte"))
	}
	return nil
}

// printOutput prints the file as it is.
func (p *Verbs) printOutput(ctx context.Context, service *commands.Service, o logs.Output) (
	logs.Checked, error) {
	file, err := o.Open()
	if err != nil {
		return logs.Checked{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return logs.Checked{}, err
	}
	checked, err := o.Check(ctx, service.Store, bytes.NewReader(text), int64(len(text)))
	switch {
	case err != nil:
	case p.JSON:
		err = p.PrintJSON(outputJSON(o, text, checked.State))
	default:
		err = p.PrintRaw(text)
	}
	return checked, err
}

// printNew prints what was written since, at once.
func (p *Verbs) printNew(text []byte, skipped int64) error {
	if skipped != 0 {
		if err := p.Flush(); err != nil {
			return err
		}
		if skipped == logs.SomeSkipped {
			p.Message("more than is kept: something is left out here")
		} else {
			p.Message("more than is kept: %s are left out here", words.Count(skipped, "byte"))
		}
	}
	if err := p.PrintRaw(text); err != nil {
		return err
	}
	return p.Flush()
}

// differs is the error of a file that is not what the command wrote.
func differs(o logs.Output, checked logs.Checked) error {
	err := cli.Exitf(cli.ExitDiscrepancy,
		"this is not the %s of attempt %d of job %s: the command wrote %s, and "+
			"%s has %s that differ", o.Stream(), o.Attempt, o.Job.ID,
		words.Count(checked.Logged.Bytes, "byte"), o.Path(), words.Count(checked.Size, "byte"))
	return cli.WithHint(err,
		"it was overwritten or cut off, or the disk was full; 'jobledger history %s --json' has "+
			"the digest, 'jobledger verify --logs' checks all files", o.Job.ID)
}

// noOutput is the error of an attempt without a file; if its event says that there was one, it says so.
func (p *Verbs) noOutput(ctx context.Context, service *commands.Service, o logs.Output) error {
	logged, salt, err := o.Logged(ctx, service.Store)
	if err != nil {
		return err
	}
	if logged.Lost(salt) {
		return cli.WithHint(cli.Exitf(cli.ExitNothing,
			"the %s that attempt %d of job %s wrote to %s were not kept: its worker could make no file for them",
			words.Count(logged.Bytes, "byte"), o.Attempt, o.Job.ID, o.Stream()),
			"the log of the worker, %s, says why: 'output not kept'", o.Job.Worker.Name)
	}
	err = p.nothing(o)
	if logged.SHA256 != "" && !ledger.IsServerAddress(p.DB) {
		place, lookErr := placeOfMissing(ctx, service.Store)
		if lookErr != nil {
			return lookErr
		}
		err = cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", errors.Unwrap(err)),
			"the command wrote %s: %s", words.Count(logged.Bytes, "byte"), place)
	}
	return err
}

// placeOfMissing says where a file that a command wrote may be. A copy that 'replay' made has none of its
// own.
func placeOfMissing(ctx context.Context, store *ledger.Store) (place string, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		made, isCopy, err := status.CopyOf(ctx, tx)
		place = "the file was removed, or is on another host"
		if isCopy {
			place = "this ledger is a copy, and the file is with " + made.From
		}
		return err
	})
	return place, err
}

// nothing is the error of an attempt without a file.
func (p *Verbs) nothing(o logs.Output) error {
	err := cli.Exitf(cli.ExitNothing, "there is no %s of attempt %d of job %s", o.Stream(), o.Attempt, o.Job.ID)
	if ledger.IsServerAddress(p.DB) {
		err = cli.Exitf(cli.ExitNothing, "on this host, %s, there is no %s of attempt %d of job %s: no %s",
			cli.Hostname("which has no name"), o.Stream(), o.Attempt, o.Job.ID, o.Path())
		return cli.WithHint(err, "look on the host where it ran, as the worker's user: 'jobledger attempts --job "+
			"%s' says which; or it wrote nothing, or ran with --no-capture", o.Job.ID)
	}
	return cli.WithHint(err, "it wrote nothing, or was not a command of 'jobledger work' with this ledger, or "+
		"ran with --no-capture; "+
		"'jobledger history %s' knows more", o.Job.ID)
}

// outputJSON is o as --json prints it.
func outputJSON(o logs.Output, text []byte, state attemptlog.State) any {
	out := struct {
		Job        event.JobID `json:"job"`
		Attempt    int         `json:"attempt"`
		Stream     string      `json:"stream"`
		Path       string      `json:"path"`
		Text       *string     `json:"text"`
		TextBase64 *string     `json:"text_base64"` // instead of text where that is not UTF-8
		ID         event.JobID `json:"id"`          // of the job, too
		Check      string      `json:"check"`       // whole, cut, size_only, differs or unchecked
	}{Job: o.Job.ID, ID: o.Job.ID, Attempt: o.Attempt, Stream: o.Stream(), Path: o.Path(), Check: string(state)}
	out.Text, out.TextBase64 = wire.Text(text)
	return out
}
