package see

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
)

// Show shows all there is to know about one job now.
func (p *Verbs) Show() cli.Verb {
	return archived.With(p.Program, jobverb.ByName(cli.Verb{
		Name: "show", Group: cli.GroupSee, Usage: "show a job with its payload and result",
		About: "With --json the job is the first line, and its events follow, one a line." + cli.AboutAsOf,
		Args:  "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{cli.AsOfFlag()},
		Examples: []cli.Example{
			{"jobledger show 01KDY9FY88", "the job whose id begins with these letters"},
			{"jobledger show 01KDY9FY88 --json | head -1 | jq -r .payload", "its payload"},
			{"jobledger show 01KDY9FY88 --as-of 14:30", "as it was at half past two"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobverb.RefOf(c)
			if err != nil {
				return err
			}
			var j state.Job
			then := p.Program
			err = p.Read(c.Context, func(tx *ledger.Tx) error {
				m, past, err := p.MomentFlag(c, "as-of", tx)
				if err != nil {
					return err
				}
				var at *projection.Moment
				if past {
					at, ref, then = &m, ref.AsOf(m), p.At(m)
				} else if then, err = p.AtCopy(c, tx); err != nil {
					return err
				}
				now, err := ref.Find(c.Context, tx)
				if err == nil {
					j, err = state.ReadJob(c.Context, tx, now, at)
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case j.State == 0:
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", j.ID, j.Later)
			case !p.JSON:
				return p.printJob(j, then.Now())
			}
			if err := p.PrintJSON(print.FullJobJSON(j, true)); err != nil {
				return err
			}
			return cli.PrintJSONLines(p.Program, j.Events)
		},
	}))
}

func (p *Verbs) printJob(j state.Job, now time.Time) error {
	if err := p.PrintPairs(print.JobPairs(j, now, p.StdoutTerminal)...); err != nil || j.ErrorDetail == "" {
		return err
	}
	_, err := p.Stdout.WriteString("error detail\n" + words.Block(j.ErrorDetail, p.StdoutTerminal))
	return err
}
