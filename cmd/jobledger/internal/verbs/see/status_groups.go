package see

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// groups prints the groups of a queue.
func (p *Verbs) groups(c *cli.Context, queue string) error {
	if err := commands.CheckQueue(queue); err != nil {
		return err
	}
	var found []group.Waiting
	var limits limit.Limit
	var now time.Time
	err := p.Read(c.Context, func(tx *ledger.Tx) error {
		past, err := p.PastFlag(c, tx)
		if err == nil {
			now = past.Or(p.Now()).At
			found, limits, err = status.Groups(c.Context, tx, queue, past.Or(p.Now()))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no group of the queue %s has jobs that wait or run", queue)
	case !p.JSON:
		return p.PrintTable(print.Groups(found, limits, p.Local(now)))
	}
	return cli.PrintJSONOf(p.Program, found, func(g group.Waiting) any { return print.NewGroupJSON(queue, g) })
}
