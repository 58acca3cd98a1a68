package jobverb

import (
	"errors"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/projection"
)

// ReasonFlag returns the flag --reason.
func ReasonFlag() cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: "why, for readers of the history: `TEXT`"}
}

// OperatorExits are the exit codes of an operator's verbs.
var OperatorExits = []int{cli.ExitConflict, cli.ExitNoJob, cli.ExitBusy}

// Operate asks for command on each job that the arguments name. Each is tried, whatever became of those
// before, and every failure is said; the first one gives the exit code. describe makes the message about one
// that it was done to, with the job as it was and as it is.
func Operate(p *cli.Program, c *cli.Context, command commands.Command, describe func(before,
	after projection.Job) string) error {
	return OperateWith(p, c, always(command), describe)
}

// OperateOrElse is [Operate] that asks otherwise for each job that is not in the ledger, with the error.
func OperateOrElse(p *cli.Program, c *cli.Context, command commands.Command, describe func(before,
	after projection.Job) string, otherwise func(*commands.Service, find.Ref, error) error) error {
	return operate(p, c, always(command), describe, otherwise)
}

// Chooser returns the command for a job of a ledger, or an error where there is none for it.
type Chooser func(service *commands.Service, before projection.Job) (commands.Command, error)

func always(command commands.Command) Chooser {
	return func(*commands.Service, projection.Job) (commands.Command, error) { return command, nil }
}

// OperateWith is [Operate] with a command for each job.
func OperateWith(p *cli.Program, c *cli.Context, choose Chooser,
	describe func(before, after projection.Job) string) error {
	return operate(p, c, choose, describe,
		func(_ *commands.Service, _ find.Ref, err error) error { return err })
}

func operate(p *cli.Program, c *cli.Context, choose Chooser,
	describe func(before, after projection.Job) string, otherwise func(*commands.Service, find.Ref,
		error) error) error {
	refs, err := RefsOf(c)
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	code, failed, lastHint := cli.ExitOK, 0, ""
	for _, ref := range refs {
		before, err := ref.Read(c.Context, service)
		if errors.Is(err, commands.ErrNoJob) {
			if err = otherwise(service, ref, err); err == nil {
				continue
			}
		}
		after := before
		var command commands.Command
		if err == nil {
			command, err = choose(service, before)
		}
		if err == nil {
			after, err = service.Apply(c.Context, p.Actor, before.ID, command)
		}
		if err == nil {
			p.Message("%s", describe(before, after))
			if p.JSON {
				err = p.PrintJSON(words.ToJSON(after))
			}
		}
		if err == nil {
			continue
		}
		thisCode, _, hint := fault.Explain(err)
		if len(refs) == 1 || thisCode == cli.ExitBusy || thisCode == cli.ExitUnexpected {
			return err // that would be said of every other one too
		}
		if lastHint = hint; p.JSON {
			p.PrintError(err)
		} else {
			p.Message("%v", err) // the hint follows the last one
		}
		if failed++; code == cli.ExitOK {
			code = thisCode
		}
	}
	if failed > 0 {
		err := cli.Exitf(code, "could not %s %d of %d jobs", c.Command.Name, failed, len(refs))
		if lastHint != "" {
			err = cli.WithHint(err, "%s", lastHint)
		}
		return err
	}
	return nil
}
