package main

import (
	"strconv"

	"github.com/urfave/cli/v2"
)

func migrateVerb(p *program) verb {
	return verb{
		name: "migrate", group: groupSetUp, usage: "bring a ledger's tables up to date",
		about: "Every command does this when it opens a ledger of an older version. migrate does nothing else, for a deployment " +
			"that wants it done, and seen to be done, before the workers start.",
		examples: []example{
			{"jobledger migrate", "prints the version of the ledger's schema afterwards"},
			{"jobledger migrate --json --db /var/lib/mail/jobs.db", "the same for a script"},
		},
		exits: []int{exitBusy},
		run: func(c *cli.Context) error {
			service, err := p.open(c.Context) // opening migrates
			if err != nil {
				return err
			}
			defer service.Store.Close()
			if p.json {
				return p.printJSON(ledgerJSON{service.Store.Path(), false, service.Store.SchemaVersion()})
			}
			return p.printPairs([2]string{"schema", strconv.Itoa(service.Store.SchemaVersion())})
		},
	}
}
