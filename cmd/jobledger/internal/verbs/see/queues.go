package see

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Queues answers which queues are or were paused.
func (p *Verbs) Queues() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "queues", Group: cli.GroupSee, Usage: "show which queues are paused, by whom, since when and why",
		About: "Every queue that has or had jobs, or was ever paused; --paused shows only those that are paused. " +
			"SINCE and BY are of the last pause or resume. With --as-of it is how things were at that moment, " +
			"however long before it a queue was paused: 'events --kind queue_paused --from' lists only the " +
			"pauses that began later. 'status' counts the jobs of each queue.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "paused", Usage: "only queues that are paused"},
			cli.AsOfFlag(),
			cli.WideFlag(),
		},
		Renamed: map[string]string{"at": "as-of"},
		Examples: []cli.Example{
			{"jobledger queues --paused", "what is paused now"},
			{"jobledger queues --paused --as-of 02:15", "what was paused at a quarter past two"},
			{"jobledger queues --paused --json | jq -r .queue", "their names, for a script"},
		},
		Exits: []int{cli.ExitNothing},
		Run: func(c *cli.Context) error {
			return p.queues(c, c.Bool("paused"))
		},
	})
}

func (p *Verbs) queues(c *cli.Context, onlyPaused bool) error {
	found, m, err := cli.ReadAsOf(p.Program, c, func(tx *ledger.Tx, past cli.Past) ([]projection.Queue, error) {
		return query.Queues{At: past.AsOf(), Paused: onlyPaused}.Read(c.Context, tx)
	})
	if err != nil {
		return err
	}
	then := p
	if m.Given {
		if !p.JSON && len(found) > 0 {
			p.Message("%s", p.Moment(m.Moment))
		}
		then = p.at(m.Moment)
	}
	switch {
	case len(found) == 0 && onlyPaused && m.Given:
		return cli.Exitf(cli.ExitNothing, "no queue was paused at %s (pos %d)", words.Time(p.Local(m.At)), m.Pos)
	case len(found) == 0 && onlyPaused:
		return cli.Exitf(cli.ExitNothing, "no queue is paused")
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no jobs yet")
	case !p.JSON:
		return p.PrintTable(print.Queues(found, then.Now()).Widened(c.Bool("wide")))
	}
	return cli.PrintJSONOf(p.Program, found, func(q projection.Queue) any { return print.QueueJSONOf(q, m) })
}
