package main

import (
	"strconv"

	"jobledger/cmd/jobledger/internal/cli"
)

func migrateVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "migrate", Group: cli.GroupSetUp, Usage: "bring a ledger's tables up to date",
		About: "Every command does this when it opens a ledger of an older version. migrate does nothing else, " +
			"for a deployment that wants it done, and seen to be done, before the workers start.",
		Examples: []cli.Example{
			{"jobledger migrate", "prints the version of the ledger's schema afterwards"},
			{"jobledger migrate --json --db /var/lib/mail/jobs.db", "the same for a script"},
		},
		Exits: []int{cli.ExitBusy},
		Run: func(c *cli.Context) error {
			service, err := p.Open(c.Context) // opening migrates
			if err != nil {
				return err
			}
			defer service.Store.Close()
			if p.JSON {
				return p.PrintJSON(ledgerJSON{service.Store.Path(), false, service.Store.SchemaVersion()})
			}
			return p.PrintPairs([2]string{"schema", strconv.Itoa(service.Store.SchemaVersion())})
		},
	}
}
