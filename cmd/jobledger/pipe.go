package main

import (
	"cmp"
	"fmt"
	"os"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/process"
)

// pipeVerb answers the requests of a program that started it.
func pipeVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "pipe", Group: cli.GroupWork,
		Usage: "answer requests from standard input: for programs in any language",
		About: "Another program starts this one, writes requests to its standard input and reads the answers " +
			"from its standard output, each a line of JSON. They are those of the HTTP API, without a server: path " +
			"is one of /api/v1, without that; method is GET, or POST where there is a body. An answer has the id " +
			"of its request, the status, and the body. Requests are carried out at the same time, so answers may " +
			"come in another order. A claim that names no worker, boot or tokens is one of this process, with a " +
			"fresh token. It ends with 0 when its input does; claims that wait then end without a job.",
		Examples: []cli.Example{
			{`echo '{"path": "/jobs", "body": {"queue": "mail", "payload": "Ada"}}' | jobledger pipe`,
				"enqueue; see 'jobledger help http' for the requests, and for recipes in five languages"},
		},
		Exits: []int{cli.ExitBusy},
		Run:   func(c *cli.Context) error { return p.pipe(c) },
	}
}

func (p *program) pipe(c *cli.Context) error {
	p.Stays = true
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	host, _ := os.Hostname() // without a name, the events have none
	config := p.webConfig(service.Store, archiveFolder(service.Store))
	config.Announce = nil
	if config.ArchiveCache, err = cli.ArchiveCache(os.Getenv(cli.ArchiveCacheEnv)); err != nil {
		return err
	}
	self := wire.Process{Worker: fmt.Sprintf("%s-%d", cmp.Or(host, "pipe"), os.Getpid()),
		Boot: process.NewBoot(), Host: host, PID: os.Getpid()}
	return web.New(config).Pipe(cli.UntilSignalled(c.Context), os.Stdin, os.Stdout, self)
}
