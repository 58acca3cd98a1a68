package operate

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/commands/argv"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// replaces reports whether the line has a command, a flag about one, or a payload.
func (p *Verbs) replaces(c *cli.Context) (bool, error) {
	about := len(p.Rest) > 0
	for _, f := range jobcmd.FormFlags() {
		about = about || c.IsSet(f.Names()[0])
	}
	switch {
	case c.IsSet("payload") && about:
		return false, cli.Usagef("--payload is the command too, where there is one: give one of them")
	case c.Bool("sh") && len(p.Rest) == 0:
		return false, cli.Usagef("--sh is about a command, and there is none")
	}
	return about || c.IsSet("payload"), nil
}

// newPayload returns what the payload of each job becomes, if the line replaces any; nil: it stays.
func (p *Verbs) newPayload(c *cli.Context, replaces bool) (func(*commands.Service, projection.Job) ([]byte,
	error), error) {
	if c.IsSet("payload") {
		payload, err := p.ReadFile("payload", c.String("payload"))
		return func(*commands.Service, projection.Job) ([]byte, error) { return payload, nil }, err
	}
	return func(s *commands.Service, before projection.Job) ([]byte, error) {
		if !replaces {
			return nil, nil
		}
		form, err := p.formOf(c, s, before)
		if err == nil {
			err = jobcmd.Change(p.Program, c, &form)
		}
		if err != nil {
			return nil, err
		}
		jobcmd.SaySecrets(p.Program, form)
		payload, err := form.Encode()
		if err != nil {
			err = cli.Usagef("%w", err)
		}
		return payload, err
	}, nil
}

// formOf is the command that a job carries.
func (p *Verbs) formOf(c *cli.Context, s *commands.Service, j projection.Job) (form argv.Form, err error) {
	if j.Form != event.FormArgv {
		return form, cli.WithHint(cli.Exitf(cli.ExitConflict, "job %s carries no command", j.ID),
			"--payload replaces its payload")
	}
	if j, err = s.Get(c.Context, j.ID); err != nil {
		return form, err
	}
	return argv.Decode(j.Payload)
}

// editByHand lets the person at the terminal edit the command of a job, or its payload.
func (p *Verbs) editByHand(c *cli.Context) error {
	refs, err := jobverb.RefsOf(c)
	if err != nil {
		return err
	}
	if len(refs) != 1 {
		return cli.Usagef("an editor opens one job; give one, or what to change")
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	found, err := refs[0].Read(c.Context, service)
	if err != nil {
		return err
	}
	j, err := service.Get(c.Context, found.ID)
	if err != nil {
		return err
	}
	if !mayReschedule(j.State) && j.State != event.Blocked {
		return cli.Exitf(cli.ExitConflict, "edit job %s: it is %s", j.ID, j.State)
	}
	text, back, err := editable(j)
	if err != nil {
		return err
	}
	edited, err := p.openEditor(c, text)
	if err != nil {
		return err
	}
	payload := j.Payload
	if edited != text {
		if payload, err = back(edited); err != nil {
			return cli.WithHint(cli.Usagef("%w", err), "nothing was changed")
		}
	}
	after, err := service.ApplyAt(c.Context, p.Actor, j.ID, j.Seq, commands.Edit{Payload: payload,
		Reschedule: commands.Reschedule{Reason: c.String("reason")}})
	if err != nil {
		return err
	}
	said := print.JobState(after, p.Now())
	if after.Seq == j.Seq {
		said += ", unchanged"
	}
	p.Message("%s", said)
	return nil
}

// editable is what a person edits of a job, and what makes a payload of that again: the text of a shell, the
// arguments of another command, one a line, or the payload.
func editable(j projection.Job) (text string, back func(string) ([]byte, error), err error) {
	if j.Form != event.FormArgv {
		return string(j.Payload), func(text string) ([]byte, error) { return []byte(text), nil }, nil
	}
	form, err := argv.Decode(j.Payload)
	if err != nil {
		return "", nil, err
	}
	if script, ok := argv.ShellText(form.Argv); ok {
		return script + "\n", func(text string) ([]byte, error) {
			if form.Argv[2] = strings.TrimSuffix(text, "\n"); form.Argv[2] == "" {
				return nil, errors.New("a command is missing")
			}
			return form.Encode()
		}, nil
	}
	if text = strings.Join(form.Argv, "\n") + "\n"; strings.Count(text, "\n") != len(form.Argv) {
		return "", nil, cli.WithHint(cli.Usagef("an argument of job %s has several lines", j.ID),
			"give the command: jobledger edit %s -- CMD", j.ID)
	}
	return text, func(text string) ([]byte, error) {
		form.Argv = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		return form.Encode()
	}, nil
}

// openEditor lets a person edit text in a file that no other user can read.
func (p *Verbs) openEditor(c *cli.Context, text string) (string, error) {
	f, err := os.CreateTemp("", "jobledger-edit-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err = f.WriteString(text); err == nil {
		err = f.Close()
	}
	if err != nil {
		return "", err
	}
	// #nosec G204 -- the user's own editor
	editor := exec.CommandContext(c.Context, "sh", "-c", `${VISUAL:-${EDITOR:-vi}} "$1"`, "sh", f.Name())
	editor.Stdin, editor.Stdout, editor.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := editor.Run(); err != nil {
		return "", cli.WithHint(cli.Usagef("the editor: %w", err), "nothing was changed; VISUAL names another one")
	}
	edited, err := os.ReadFile(f.Name())
	return string(edited), err
}
