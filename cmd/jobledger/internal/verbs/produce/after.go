package produce

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/commands"
	"jobledger/ledger/event"
)

// readDependencies reads what --after and --before say into e. The jobs must be in the ledger.
func readDependencies(c *cli.Context, service *commands.Service, e *commands.Enqueue) (err error) {
	for _, flag := range []struct {
		name string
		into *[]commands.Dependency
	}{{"after", &e.After}, {"before", &e.Before}} {
		for _, text := range c.StringSlice(flag.name) {
			ref, word, given := strings.Cut(text, ":")
			d := commands.Dependency{On: event.OnSucceeded}
			switch {
			case given && word == event.OnFailed.String():
				d.On = event.OnFailed
			case given && word == event.OnFinished.String():
				d.On = event.OnFinished
			case given:
				return cli.Usagef("--%s: %q is neither JOB:failed nor JOB:finished", flag.name, text)
			}
			j, err := jobref.Ref{ID: ref}.Read(c.Context, service)
			if err != nil {
				return err
			}
			d.Job = j.ID
			*flag.into = append(*flag.into, d)
		}
	}
	return e.CheckDependencies()
}
