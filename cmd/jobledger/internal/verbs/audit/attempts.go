package audit

import (
	"math"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// Attempts lists claims: who worked on what, from when to when.
func (p *Verbs) Attempts() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "attempts", Group: cli.GroupAudit, Usage: "list claims: who worked on which job, from when to when",
		About: "A line for each claim, the oldest first. --from and --to select the claims that were live at " +
			"some time in between, ends included: one that began before and one that has not ended are among them. " +
			"--overlap selects the claims of jobs that two owners worked on at once: the one whose write was " +
			"refused when the job had been claimed again, and those that had begun by then. With --as-of nothing " +
			"is known of what came after that moment: neither that a claim ended nor that its worker lived. With " +
			"--json, outcome and ended_at of a claim that has not ended are null; code is the error code, or the " +
			"reason for which it was taken back, released or cancelled, version is its worker's, and with --job " +
			"payload_replaced_at is there if the job got another payload after the claim: show has that one. " +
			"The command line of a worker is not recorded.\n" +
			"cpu_user and cpu_system are the processor time, and max_rss the most memory, of the processes of a " +
			"command that 'work' or 'exec' ran: on Linux of all that it started, elsewhere of those that it waited " +
			"for. On Linux a process counts from the memory of the supervising parent on, about 16 MB; where it had " +
			"no more, max_rss is missing. --format names the columns and their order, for --csv and --json too, " +
			"with times in seconds and memory in bytes; '--format help' lists them.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "worker", Usage: "only of the worker with this `NAME` or boot"},
			&cli.StringFlag{Name: "from", Usage: "only those live at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only those live at or before `TIME`"},
			&cli.StringFlag{Name: "job", Usage: "only of this `JOB`"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "only of jobs of this `QUEUE`"},
			cli.ListFlag("outcome", "only those that ended as `O`: succeeded, failed, released, reclaimed, "+
				"cancelled; or open"),
			&cli.StringFlag{Name: "code", Usage: "only those that ended with the error code or for the reason `CODE`"},
			&cli.StringFlag{Name: "as-of", Usage: "as they were at `TIME`: one that ended later is open"},
			&cli.StringFlag{Name: "format", Usage: "these `COLUMNS`, with commas; help lists them"},
			&cli.BoolFlag{Name: "csv", Usage: "print CSV, with a header", DisableDefaultText: true},
			cli.WideFlag(),
			&cli.BoolFlag{Name: "overlap", Usage: "only those that ran at the same time as another of the same job"},
			cli.WholeFlag("limit", "the first `N` of them", 0, 1, math.MaxInt, "all", "n"),
			cli.WholeFlag("last", "the last `N` of them; without N, those of the newest job", 0, 1,
				math.MaxInt, "all"),
		},
		Examples: []cli.Example{
			{"jobledger attempts --worker w7 --from 14:00 --to 14:30", "what this worker did in that half hour"},
			{"jobledger attempts --outcome reclaimed --from -1d", "whose leases ran out since yesterday"},
			{"jobledger attempts -q mail --last 20", "the latest twenty claims of a queue"},
			{"jobledger attempts --outcome released --code 'the worker is stopping' --from -1d",
				"what was given back when workers stopped, as at a deploy"},
			{"jobledger attempts --from -1d --format no,what,state,elapsed,cpu,max_rss,exit",
				"what each of them cost"},
			{"jobledger attempts --overlap --from -1d --json", "jobs that two workers had at once"},
		},
		Exits:    []int{cli.ExitNothing, cli.ExitNoJob},
		Complete: map[string][]string{"outcome": query.Outcomes},
		Run:      p.attempts,
	})
}

func (p *Verbs) attempts(c *cli.Context) error {
	chosen, err := p.attemptFormat(c)
	if chosen == nil && c.IsSet("format") || err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var q query.Attempts
	var then *cli.Program
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if q, then, err = p.attemptsQuery(c, tx); err == nil && c.IsSet("last") {
			q.After, err = find.BeforeLastAttempts(c.Context, tx, q, c.Int("last"))
		}
		return err
	})
	if err != nil {
		return err
	}
	t := print.Attempts()
	r := find.Reader{Store: service.Store, Limit: c.Int("limit")}
	for a, err := range r.Attempts(c.Context, q) {
		if err == nil && chosen != nil {
			err = chosen.add(c, service.Store, a, then.Now())
		} else if err == nil && p.JSON {
			err = p.PrintJSON(print.NewAttemptJSON(a))
		}
		if err != nil {
			return err
		}
		if chosen == nil && !p.JSON {
			print.AddAttempt(t, a, then.Now())
		}
	}
	switch {
	case r.Taken == 0:
		return cli.Exitf(cli.ExitNothing, "no claim matches")
	case chosen != nil:
		err = p.printFormat(c, chosen, then.Now())
	case !p.JSON:
		err = p.PrintTable(t.Widened(c.Bool("wide")))
	}
	if err == nil && r.More {
		return p.MessageAfter("%s; give a larger --limit", words.MoreThan(r.Taken, "claim"))
	}
	return err
}

// attemptsQuery reads the flags. then is p by whose clock the claims are shown.
func (p *Verbs) attemptsQuery(c *cli.Context, tx *ledger.Tx) (q query.Attempts, then *cli.Program,
	err error) {
	var job int64
	if c.IsSet("job") {
		if job, err = (find.Typed(c.String("job"))).Number(c.Context, tx); err != nil {
			return q, nil, err
		}
	}
	asked, err := jobverb.Asked(p.Program, c, find.AttemptFields)
	if err == nil {
		q, err = find.Attempts(c.Context, tx, asked, job, p.Now())
	}
	q.Overlap = c.Bool("overlap")
	if err != nil || c.IsSet("as-of") {
		return q, p.At(q.At), err
	}
	then, err = p.AtCopy(c, tx)
	return q, then, err
}
