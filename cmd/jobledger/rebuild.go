package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// rebuildVerb heals the tables after somebody has changed them by hand.
func rebuildVerb(p *program) verb {
	return verb{
		name: "rebuild", group: groupLedger, usage: "derive the tables of jobs and queues anew from the events",
		about: "Rows that differ from what the events say are put right, in one transaction, as are guards, indexes and views " +
			"that are missing or altered, which on PostgreSQL takes the schema's owner; that this was done becomes an event itself. Workers go on while it looks for what differs, " +
			"and wait only while that is written; where a table is missing as a whole, they wait throughout, and leases may run out. " +
			"An event that cannot be understood stops it, and then nothing is changed.",
		examples: []example{
			{"jobledger rebuild", "after 'jobledger verify' has found rows that differ"},
		},
		exits: []int{exitDiscrepancy, exitBusy},
		run: func(c *cli.Context) error {
			service, err := p.open(c.Context)
			if err != nil {
				return err
			}
			defer service.Store.Close()
			defer tuneGC()()
			r, err := service.Rebuild(c.Context, p.actor)
			if errors.Is(err, projection.ErrIllegal) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnknownKind) {
				return withHint(exitf(exitDiscrepancy, "nothing was changed: %w", err), "see 'jobledger verify'")
			}
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(struct {
					Jobs    int64    `json:"jobs"`
					Changed int64    `json:"changed"`
					Missing int64    `json:"missing"`
					Extra   int64    `json:"extra"`
					Queues  int64    `json:"queues"`
					Mended  []string `json:"mended"`
				}{r.Jobs, r.Changed, r.Missing, r.Extra, r.Queues, append([]string{}, r.Repaired...)})
			}
			for _, o := range r.Repaired {
				if err := p.printLine(o + " put right"); err != nil {
					return err
				}
			}
			if r.Changed+r.Missing+r.Extra+r.Queues == 0 {
				return p.printLine(fmt.Sprintf("%s derived anew; every row was right already", render.Count(r.Jobs, "job")))
			}
			return p.printLine(fmt.Sprintf("%s derived anew; rows of jobs: %d changed, %d added, %d removed; rows of queues: %d changed",
				render.Count(r.Jobs, "job"), r.Changed, r.Missing, r.Extra, r.Queues))
		},
	}
}
