package main

import (
	"errors"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger"
)

func initVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "init", Group: cli.GroupSetUp, Usage: "make an empty ledger",
		About: "A ledger is one SQLite file that only you can read; while it is in use, a -wal and a -shm file " +
			"lie next to it and belong to it. Where there is a ledger already, nothing happens. enqueue and work " +
			"make one too.\n" +
			"In PostgreSQL a ledger is a schema of a database, which must be there: jobledger, or the one that " +
			"?schema= of --db names. To make it takes the right to create in the database; who works with it later " +
			"needs less, see schema/postgres/roles.sql. A password stands better in PGPASSWORD or ~/.pgpass than " +
			"in --db, where every user of the machine can read it.",
		Examples: []cli.Example{
			{"jobledger init", "jobledger.db in this directory"},
			{"jobledger init --db /var/lib/mail/jobs.db",
				"another place; every command then needs the same --db, or JOBLEDGER_DB"},
			{"jobledger init --db postgres://app@db.example/jobs",
				"on a PostgreSQL server, 14 or newer; make the database with createdb first"},
		},
		Exits: []int{cli.ExitBusy},
		Run:   p.initLedger,
	}
}

// ledgerJSON is a ledger that was opened.
type ledgerJSON struct {
	DB            string `json:"db"`
	Created       bool   `json:"created"`
	SchemaVersion int    `json:"schema_version"`
}

func (p *program) initLedger(c *cli.Context) error {
	service, err := p.Open(c.Context)
	missing := errors.Is(err, ledger.ErrNoLedger)
	if missing {
		service, err = p.Create(c.Context)
	}
	if err != nil {
		return err
	}
	defer service.Store.Close()
	path := service.Store.Path()
	if !missing {
		p.Message("there is a ledger already: %s", path)
	}
	if p.JSON {
		return p.PrintJSON(ledgerJSON{path, missing, service.Store.SchemaVersion()})
	}
	return p.PrintLine(path)
}
