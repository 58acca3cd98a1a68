package prove

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/ledger"
	"jobledger/ledger/proof"
)

// Checkpoint prints what the ledger is now, for a place outside of it.
func (p *Verbs) Checkpoint() cli.Verb {
	return cli.Verb{
		Name: "checkpoint", Group: cli.GroupLedger, Usage: "print what the ledger is now, to be kept elsewhere",
		About: "A checkpoint is a few lines of text: the ledger's name, how many events it has, and the root of " +
			"their hash tree. Kept where those who can write the ledger cannot reach it, it shows later whether the " +
			"events are still the same: 'jobledger verify --against'. The text is that of C2SP's checkpoints; --key " +
			"signs it.\n" +
			"--exec runs a command by the shell, with the text on its standard input; --to appends the text to a " +
			"file. The checkpoint counts as handed out, and is recorded, when every command ended with 0 and every " +
			"file was synced. What is only printed does not count. Where no event was recorded since the last one " +
			"that was handed out, nothing is printed (3). 'jobledger help security' has commands for --exec.",
		Flags: []cli.Flag{
			cli.ListFlag("key", "sign with the private key in `FILE`; may be repeated, as while keys are changed"),
			cli.ListFlag("exec", "hand it out to `CMD`, a line for the shell; may be repeated"),
			cli.ListFlag("to", "append it to `FILE`; may be repeated"),
		},
		Examples: []cli.Example{
			{"jobledger checkpoint", "print it, without recording that"},
			{"jobledger checkpoint --key ~/jobs.key --exec \"ssh audit 'cat >>jobs.checkpoints'\"",
				"keep it on another machine; for cron, every hour"},
			{"jobledger checkpoint --to /mnt/worm/jobs.checkpoints", "on a disk that cannot be overwritten"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy, cli.ExitBusy},
		Run:   p.handOut,
	}
}

func (p *Verbs) handOut(c *cli.Context) error {
	var keys []string
	for _, file := range c.StringSlice("key") {
		key, err := prove.PrivateKey(file)
		if err != nil {
			return cli.Usagef("--key: %w", err)
		}
		keys = append(keys, key)
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	head, err := prove.NextHead(c.Context, service.Store)
	if err != nil {
		return handOutError(err)
	}
	text, err := head.SignWith(keys)
	if err != nil {
		return handOutError(err)
	}
	if len(keys) == 0 && len(head.Keys) > 0 {
		p.Message("the checkpoint is not signed, though the ledger names a key: --key FILE signs it")
	}
	commands, files := c.StringSlice("exec"), c.StringSlice("to")
	if err := p.handTo(c.Context, service.Store, text, commands, files); err != nil {
		return handOutError(err)
	}
	handedOut := len(commands)+len(files) > 0
	if handedOut {
		if err := prove.RecordHandedOut(c.Context, service.Store, head, text); err != nil {
			return err
		}
	}
	if !p.JSON {
		_, err := p.Stdout.Write(text)
		return err
	}
	return p.PrintJSON(struct {
		Origin    string   `json:"origin"`
		Size      int64    `json:"size"`
		Root      string   `json:"root"`
		Signers   []string `json:"signers"`
		HandedOut bool     `json:"handed_out"`
		Text      string   `json:"text"`
	}{head.Origin, head.Size, head.Root.String(), append([]string{}, proof.Signers(text)...), handedOut,
		string(text)})
}

// handTo gives text to each of commands and files. The first error ends it.
func (p *Verbs) handTo(ctx context.Context, store *ledger.Store, text []byte, commands,
	files []string) error {
	for _, file := range files { // before anything is handed out
		if err := prove.CheckFile(ctx, store, file); err != nil {
			return err
		}
	}
	stopped, end := jobcmd.Stoppable(ctx)
	defer end()
	for _, line := range commands {
		if strings.TrimSpace(line) == "" {
			return cli.Usagef("--exec is empty")
		}
		command := exec.CommandContext(stopped, "sh", "-c", line) // #nosec G204 -- the user's own line, as in cron
		command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), p.Stderr, p.Stderr
		if err := command.Run(); err != nil {
			return cli.WithHint(cli.Exitf(cli.ExitUnexpected, "--exec %s: %w", line, err),
				"the checkpoint does not count as handed out; the same line tries it again")
		}
	}
	for _, file := range files {
		if err := prove.AppendFile(file, text); err != nil {
			return cli.WithHint(err, "the checkpoint does not count as handed out; the same line tries it again")
		}
	}
	return nil
}

// handOutError adds exit codes and hints to the errors of package prove.
func handOutError(err error) error {
	switch {
	case errors.Is(err, prove.ErrNothingNew):
		return cli.Exitf(cli.ExitNothing, "%w", err)
	case errors.Is(err, prove.ErrOtherKey):
		return cli.WithHint(cli.Usagef("%w", err), "'jobledger seal --rotate --key FILE' names the key of FILE")
	case errors.Is(err, prove.ErrForked):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err),
			"nothing was handed out; 'jobledger verify --against FILE' says more")
	case errors.Is(err, proof.ErrInvalid):
		return cli.WithHint(cli.Usagef("--to: %w", err),
			"nothing was handed out; give a file that holds checkpoints only")
	}
	return err
}
