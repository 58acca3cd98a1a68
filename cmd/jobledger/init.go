package main

import (
	"errors"
	"os"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger"
)

func initVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "init", Here: true, Group: cli.GroupSetUp, Usage: "make an empty ledger",
		About: "A ledger is one SQLite file that only you can read; while it is in use, a -wal and a -shm file " +
			"lie next to it and belong to it. If there is a ledger already, nothing happens. enqueue and work " +
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

// nextAfterInit says what is to be done with a new ledger.
func nextAfterInit(path string) string {
	const units = "/usr/lib/systemd/system/jobledger-worker@.service"
	_, err := os.Stat(units)
	switch {
	case ledger.IsServerAddress(path):
		return "next: give those who use it their rights, see 'jobledger help postgres'; " +
			"then 'jobledger help quickstart'"
	case err == nil && path == "/var/lib/jobledger/jobs.db":
		return "next: put a program into /etc/jobledger/work.d/QUEUE, and 'systemctl enable --now " +
			"jobledger-worker@QUEUE jobledger-serve'; see 'jobledger help quickstart'"
	}
	return "next: 'jobledger enqueue -q QUEUE PAYLOAD', then 'jobledger work -q QUEUE -- CMD'; " +
		"see 'jobledger help quickstart'"
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
	if missing {
		p.Message("%s", nextAfterInit(path))
	}
	return p.PrintLine(path)
}
