package produce

import (
	"context"
	"errors"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/commands"
	"jobledger/ledger/event"
)

// readDependencies reads what --after and --before say into e. The jobs must be in the ledger of service;
// nil: in that of a server, which looks for them.
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
			if service == nil {
				id, err := ulid.ParseStrict(ref)
				if err != nil {
					return cli.Usagef("--%s: with --url a job is named by its whole id", flag.name)
				}
				d.Job = event.JobID(id.String())
			} else {
				j, err := find.Typed(ref).Read(c.Context, service)
				if errors.Is(err, commands.ErrNoJob) {
					j, err = archived.Job(c.Context, service, find.Typed(ref), err)
				}
				if d.Job = j.ID; err != nil {
					return err
				}
			}
			*flag.into = append(*flag.into, d)
		}
	}
	return e.CheckDependencies()
}

// enqueuer is a ledger, or a server that has one.
type enqueuer interface {
	Enqueue(ctx context.Context, actor string, jobs ...commands.Enqueue) ([]commands.Enqueued, error)
}

// ledgerOf returns where jobs are enqueued: service is nil where that is a server. done must be called.
func (p *Verbs) ledgerOf(c *cli.Context) (to enqueuer, service *commands.Service, done func(), err error) {
	client, err := p.Remote(c)
	if err != nil {
		return nil, nil, nil, err
	}
	if client != nil {
		return client, nil, func() { _ = client.Close() }, p.CheckRemote(c)
	}
	if service, err = p.OpenOrCreate(c.Context); err != nil {
		return nil, nil, nil, err
	}
	return service, service, func() { _ = service.Store.Close() }, nil
}
