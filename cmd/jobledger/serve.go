package main

import (
	"bufio"
	"context"
	"io"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/page"
	"jobledger/ledger"
)

// serveVerb shows the ledger to browsers and other programs.
func serveVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "serve", Group: cli.GroupSee, Usage: "show the ledger in a browser, as a JSON API, and as metrics",
		About: "For browsers and programs on this host, and for producers and workers. Each request needs a credential. At the start it prints a login link, " +
			"which works once, for 5 minutes; the login page can have another one printed. A session lasts 12 " +
			"hours, and ends after one without a request. On a Unix socket, whose folder must belong to this " +
			"user alone, the processes of this user need no login.\n" +
			"The API under /api/v1 answers what status, list, show, history, why, workers, queues and events " +
			"print with --json; /metrics has the format of Prometheus. See 'jobledger help http'. It runs until " +
			"it is interrupted, and then ends with 0.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "at this `ADDRESS`: HOST:PORT, port 0 for a free one, or unix:PATH",
				Value: "127.0.0.1:0", DefaultText: "127.0.0.1 and a free port"},
			accessFlag(),
			cli.WholeFlag("rate", "a token may make `N` requests a second, on average", access.PerSecond, 1, 1_000_000,
				""),
		},
		Examples: []cli.Example{
			{"jobledger serve", "prints the link to open in a browser on this host"},
			{"jobledger serve --listen 127.0.0.1:8080",
				"always at the same port, as for 'ssh -L 8080:127.0.0.1:8080'"},
			{"jobledger serve --listen unix:/run/user/1000/jobledger/http",
				"for 'curl --unix-socket /run/user/1000/jobledger/http http://localhost/api/v1/status'"},
		},
		Exits: []int{cli.ExitBusy},
		Run:   func(c *cli.Context) error { return p.serve(c) },
	}
}

func (p *program) serve(c *cli.Context) error {
	ctx, address := c.Context, c.String("listen")
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	listener, err := door.Listen(ctx, address)
	if err != nil {
		return err
	}
	ctx = cli.UntilSignalled(ctx)
	config := p.webConfig(service.Store)
	config.Access, config.Rate = p.accessPath(c), float64(c.Int("rate"))
	server := web.New(config)
	if err := p.printAddress(listener.Addr().String()); err != nil {
		return err
	}
	return server.Serve(ctx, listener)
}

// webConfig serves store by the verbs of this program.
func (p *program) webConfig(store *ledger.Store) web.Config {
	return web.Config{Store: store, Ask: p.ask(store), Tables: p.tables(store), Now: p.Now,
		Name: cli.DisplayDSN(p.DB), Owner: p.DefaultActor(), Announce: p.announce, Report: p.Message}
}

// printAddress prints where the server listens, at once: another program may wait for it.
func (p *program) printAddress(address string) error {
	var err error
	if p.JSON {
		err = p.PrintJSON(map[string]string{"listen": address})
	} else {
		err = p.PrintLine("listens at " + address)
	}
	if err != nil {
		return err
	}
	return p.Flush()
}

// announce prints a login link. It may be called while the server runs, so it does not share the buffer of
// stdout: the link is a message.
func (p *program) announce(link string) {
	p.Message("open within 5 minutes, once: %s", link)
}

// ask returns a function that runs one verb on store.
func (p *program) ask(store *ledger.Store) api.Ask {
	return func(ctx context.Context, out io.Writer, words []string) error {
		return p.askVerb(ctx, store, out, nil, words)
	}
}

// tables returns a function that runs one verb on store for its tables.
func (p *program) tables(store *ledger.Store) page.Tables {
	return func(ctx context.Context, words []string) (tables []*cli.Table, err error) {
		err = p.askVerb(ctx, store, io.Discard, func(t *cli.Table) { tables = append(tables, t) }, words)
		return tables, err
	}
}

func (p *program) askVerb(ctx context.Context, store *ledger.Store, out io.Writer, tables func(*cli.Table),
	words []string) error {
	verb := *p.Program
	verb.Opened, verb.Tables, verb.Stderr = store, tables, io.Discard
	verb.Stdout = bufio.NewWriterSize(out, 4<<10)
	verb.StdoutTerminal, verb.StderrTerminal, verb.Width, verb.Color = false, false, 0, false
	err := verb.Dispatch(ctx, words, (&program{&verb}).verbs())
	if flushErr := verb.Flush(); err == nil {
		err = flushErr
	}
	return err
}
