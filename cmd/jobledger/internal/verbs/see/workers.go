package see

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/ledger"
	"jobledger/projection/status"
)

// Workers answers who is alive.
func (p *Verbs) Workers() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "workers", Group: cli.GroupSee, Usage: "show the worker processes and what they hold",
		About: "A worker is working, or idle, or silent: it shows no sign of life, and it did not report its " +
			"stop. A claimer that is not a worker process is known by its " +
			"heartbeats only, and silent once all of its leases have run out. Next to each job stand how long " +
			"it has been held, the age of its last heartbeat, and what it reported. A job in " +
			"parentheses was cancelled or reclaimed while its command may still run. --all shows those too that " +
			"have stopped, and those that have been silent for more than a day. SEEN is the last sign of life: " +
			"presence, which a worker records every 15s, or an event of it. A worker is silent if it has shown " +
			"none for 45s, for 20s if a worker of its name has started on its host since, or since a lease of " +
			"its ran out, and at once if its process was of this machine and is gone. With --as-of it is how " +
			"things stood then. A worker that has shown no life up to now was silent from " +
			"the first presence that it missed, or from the start of its successor.",
		Flags: []cli.Flag{
			cli.AsOfFlag(),
			&cli.BoolFlag{Name: "all", Usage: "every worker that ever started"},
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger workers", "who is alive, since when, and what they hold"},
			{"jobledger workers --all --json", "an object for each, with its jobs"},
			{"jobledger workers --as-of 02:15", "who held what at a quarter past two"},
		},
		Exits: []int{cli.ExitNothing},
		Run: func(c *cli.Context) error {
			p := p // with --as-of, a program with its clock stopped
			workers, past, err := cli.ReadAsOf(p.Program, c, func(tx *ledger.Tx, past cli.Past) (
				[]status.Worker, error) {
				return status.Workers{At: past.Or(p.Now()), All: c.Bool("all")}.Read(c.Context, tx)
			})
			if past.Given && err == nil {
				if !p.JSON {
					p.Message("%s", p.Moment(past.Moment))
				}
				p = p.at(past.Moment)
			}
			switch {
			case err != nil:
				return err
			case len(workers) == 0 && c.Bool("all"):
				return cli.Exitf(cli.ExitNothing, "no worker has ever started")
			case len(workers) == 0:
				return cli.WithHint(cli.Exitf(cli.ExitNothing, "no worker is there"),
					"--all shows those that have stopped")
			case !p.JSON:
				return p.PrintTable(print.Workers(workers, p.Now()).Widened(c.Bool("wide")))
			}
			return cli.PrintJSONOf(p.Program, workers, print.NewWorkerJSON)
		},
	})
}
