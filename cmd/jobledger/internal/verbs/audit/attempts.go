package audit

import (
	"math"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/archived"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/paging"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
)

// outcomes are what --outcome takes: how a claim ended, or that it has not.
var outcomes = []string{"succeeded", "failed", "released", "reclaimed", "cancelled", "open"}

// Attempts lists claims: who worked on what, from when to when.
func (p *Verbs) Attempts() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "attempts", Group: cli.GroupAudit, Usage: "list claims: who worked on which job, from when to when",
		About: "A line for each claim, the oldest first. --from and --to select the claims that were live at " +
			"some time in between, ends included: one that began before and one that has not ended are among them. " +
			"--overlap selects the claims of jobs that two owners worked on at once: the one whose write was " +
			"refused when the job had been claimed again, and those that had begun by then. With --json, outcome " +
			"and ended_at of a claim that has not ended are null.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "worker", Usage: "only of the worker with this `NAME` or boot"},
			&cli.StringFlag{Name: "from", Usage: "only those live at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only those live at or before `TIME`"},
			&cli.StringFlag{Name: "job", Usage: "only of this `JOB`"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "only of jobs of this `QUEUE`"},
			cli.ListFlag("outcome", "only those that ended as `O`: succeeded, failed, released, reclaimed, "+
				"cancelled; or open"),
			cli.WideFlag(),
			&cli.BoolFlag{Name: "overlap", Usage: "only those that ran at the same time as another of the same job"},
			cli.WholeFlag("limit", "the first `N` of them", 0, 1, math.MaxInt, "all"),
			cli.WholeFlag("last", "the last `N` of them", 0, 1, math.MaxInt, "all"),
		},
		Examples: []cli.Example{
			{"jobledger attempts --worker w7 --from 14:00 --to 14:30", "what this worker did in that half hour"},
			{"jobledger attempts --outcome reclaimed --from -1d", "whose leases ran out since yesterday"},
			{"jobledger attempts -q mail --last 20", "the latest twenty claims of a queue"},
			{"jobledger attempts --overlap --from -1d --json", "jobs that two workers had at once"},
		},
		Exits:    []int{cli.ExitNothing, cli.ExitNoJob},
		Complete: map[string][]string{"outcome": outcomes},
		Run:      p.attempts,
	})
}

func (p *Verbs) attempts(c *cli.Context) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var f attempts.Filter
	then := p.Program
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if f, err = p.attemptFilter(c, tx); err == nil && c.IsSet("last") {
			f.After, err = paging.BeforeLastAttempts(c.Context, tx, f, c.Int("last"))
		}
		if err == nil {
			then, err = p.AtCopy(c, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	t := layout.Attempts()
	r := paging.Reader{Store: service.Store, Limit: c.Int("limit")}
	for a, err := range r.Attempts(c.Context, f) {
		if err == nil && p.JSON {
			err = p.PrintJSON(layout.NewAttemptJSON(a))
		}
		if err != nil {
			return err
		}
		if !p.JSON {
			layout.AddAttempt(t, a, then.Now())
		}
	}
	switch {
	case r.Taken == 0:
		return cli.Exitf(cli.ExitNothing, "no claim matches")
	case !p.JSON:
		err = p.PrintTable(t.Widened(c.Bool("wide")))
	}
	if err == nil && r.More {
		return p.MessageAfter("%s; give a larger --limit", render.MoreThan(r.Taken, "claim"))
	}
	return err
}

func (p *Verbs) attemptFilter(c *cli.Context, tx *ledger.Tx) (f attempts.Filter, err error) {
	from, to, err := p.FromTo(c)
	if err != nil {
		return f, err
	}
	f = attempts.Filter{Worker: c.String("worker"), Queue: c.String("queue"),
		Overlap: c.Bool("overlap")}
	for _, word := range c.StringSlice("outcome") {
		if !slices.Contains(outcomes, word) {
			return f, cli.WithHint(cli.Usagef("--outcome: there is no outcome %q", word), "the outcomes are %s",
				strings.Join(outcomes, ", "))
		}
		kind, _ := event.ParseKind(word) // 0 for open
		f.Outcomes = append(f.Outcomes, kind)
	}
	if c.IsSet("job") {
		if f.Job, err = (jobref.Ref{ID: c.String("job")}).Number(c.Context, tx); err != nil {
			return f, err
		}
	}
	if from == nil && f.Job == 0 {
		if err := projection.AfterHorizon(c.Context, tx, 0); err != nil {
			return f, err
		}
	}
	if from != nil { // what ended at this very moment was live at it
		if from.ByPos {
			f.From, err = projection.AtPos(c.Context, tx, max(from.Pos-1, 0))
		} else {
			f.From, err = projection.AtTime(c.Context, tx, from.Time.Add(-1))
		}
	}
	switch {
	case err != nil:
	case to == nil:
		f.To, err = projection.AtPos(c.Context, tx, math.MaxInt64)
	case to.ByPos:
		f.To, err = projection.AtPos(c.Context, tx, to.Pos)
	default:
		f.To, err = projection.AtTime(c.Context, tx, to.Time)
	}
	return f, err
}
