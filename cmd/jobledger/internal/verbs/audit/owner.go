package audit

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/ledger"
)

// Owner answers "who had this job when it happened".
func (p *Verbs) Owner() cli.Verb {
	return archived.With(p.Program, jobverb.ByName(cli.Verb{
		Name: "owner", Group: cli.GroupAudit, Usage: "show who held a job at a moment",
		About: "A claim holds from the moment of its event claimed until right before that of its end. A lease " +
			"that had run out held on until another process reclaimed the job, so its worker counts as the owner " +
			"until then.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{&cli.StringFlag{Name: "as-of",
			Usage: "the moment: a `TIME`, or a place in the ledger, pos:N", Required: true}},
		Renamed: map[string]string{"at": "as-of"},
		Examples: []cli.Example{
			{"jobledger owner 01KDY9FY88 --as-of 14:30", "who held it at half past two"},
			{"jobledger owner 01KDY9FY88 --as-of pos:4711 --json", "right after that event, for a script"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobverb.RefOf(c)
			if err != nil {
				return err
			}
			var o print.Owner
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				at, _, err := p.MomentFlag(c, "as-of", tx)
				if err != nil {
					return err
				}
				n, err := ref.AsOf(at).Number(c.Context, tx)
				if err == nil {
					o, err = print.ReadOwner(c.Context, tx, n, at)
				}
				return err
			})
			if err != nil {
				return err
			}
			return p.printOwner(o)
		},
	}))
}

func (p *Verbs) printOwner(o print.Owner) error {
	if p.JSON {
		if err := p.PrintJSON(print.NewOwnerJSON(o)); err != nil {
			return err
		}
	}
	zone := p.Now().Location()
	switch {
	case o.State == 0:
		return cli.Exitf(cli.ExitNothing, "no worker held job %s at %s: it was not enqueued yet", o.Job,
			print.OwnerMoment(o, zone))
	case !o.Held():
		return cli.Exitf(cli.ExitNothing, "no worker held job %s at %s: it was %s", o.Job,
			print.OwnerMoment(o, zone), o.State)
	case p.JSON:
		return nil
	}
	return p.PrintPairs(print.OwnerPairs(o, zone)...)
}
