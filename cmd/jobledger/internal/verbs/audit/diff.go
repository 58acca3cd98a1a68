package audit

import (
	"context"
	"math"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Diff shows what an incident did, by what was before and what was after it.
func (p *Verbs) Diff() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "diff", Group: cli.GroupAudit, Usage: "show what changed between two moments",
		About: "How many jobs were in one state at --from (left) and in another at --to (above); – is not " +
			"enqueued yet. Jobs to which nothing happened in between are not counted. Below stand the oldest jobs " +
			"of each cell, and the workers that came and went: stopped, or not heard of again since a lease of " +
			"theirs ran out or since their last sign of life. One that came and stopped in between did both.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the first moment: a `TIME`, or a place in the ledger, pos:N",
				Required: true},
			&cli.StringFlag{Name: "to", Usage: "the second `TIME`", DefaultText: "now"},
			cli.WholeFlag("limit", "name up to `N` jobs of each cell", 5, 0, math.MaxInt, "", "n"),
		},
		Examples: []cli.Example{
			{"jobledger diff --from 14:00 --to 14:30", "what that half hour did"},
			{"jobledger diff --from -1h --limit 100000 --json | jq -r '.cells[] | select(.to==\"failed\") | .jobs[]'",
				"the jobs that failed for good in the last hour"},
		},
		Run: p.diff,
	})
}

func (p *Verbs) diff(c *cli.Context) error {
	var from, to projection.Moment
	var d status.Diff
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		var given bool
		if from, _, err = p.MomentFlag(c, "from", tx); err != nil {
			return err
		}
		if to, given, err = p.MomentFlag(c, "to", tx); err == nil && !given {
			to, err = p.newest(c.Context, tx)
		}
		if err != nil {
			return err
		}
		err = query.Window{From: query.AtPos(from.Pos), To: query.AtPos(to.Pos)}.Check()
		if err != nil {
			return err
		}
		d, err = status.Compare(c.Context, tx, from, to, c.Int("limit"))
		return err
	})
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(print.NewDiffJSON(from, to, d))
	}
	return p.printDiff(from, to, d)
}

// newest is the moment of the copy if the ledger is one; else now.
func (p *Verbs) newest(ctx context.Context, tx *ledger.Tx) (projection.Moment, error) {
	made, ok, err := status.CopyOf(ctx, tx)
	if err != nil || ok {
		return made.Moment, err
	}
	return projection.AtTime(ctx, tx, p.Now())
}

func (p *Verbs) printDiff(from, to projection.Moment, d status.Diff) error {
	zone := p.Now().Location()
	err := p.PrintWrapped(print.DiffTitle(from, to, zone))
	switch {
	case err != nil:
		return err
	case len(d.Cells) == 0:
		err = p.PrintLine("nothing happened to any job")
	default:
		err = p.PrintTable(print.DiffMatrix(d.Cells))
	}
	if err != nil {
		return err
	}
	return p.PrintWrapped(print.DiffLines(d, zone)...)
}
