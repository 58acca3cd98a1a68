package jobcmd

import (
	"errors"
	"io"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands/worker"
)

// PassOutputOn makes sure that neither the worker nor its jobs wait for ever for a reader of what they
// say. The caller calls finish at the end, after which messages go where they went before, if anybody reads
// there.
func PassOutputOn(p *cli.Program, command *worker.Command) (finish func()) {
	stderr := p.Stderr
	out, messages := newOutlet(command.Stdout, cli.ProgramName), newOutlet(stderr, cli.ProgramName)
	command.Stdout, command.Stderr, p.Stderr = out, messages, messages.Messages()
	return func() {
		const most = 2 * time.Second
		out.Finish(most)
		if p.Stderr = stderr; !messages.Finish(most) {
			p.Stderr = io.Discard
		}
	}
}

// Error gives a command that cannot be run the exit code that a shell would.
func Error(err error) error {
	if e, ok := errors.AsType[*worker.StartError](err); ok {
		return cli.WithHint(cli.Exitf(e.Code, "%w", e), "no job was harmed: what was claimed has been given back")
	}
	return err
}
