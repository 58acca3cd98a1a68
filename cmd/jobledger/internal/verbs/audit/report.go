package audit

import (
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Report answers the questions of a bad night.
func (p *Verbs) Report() cli.Verb {
	about := "The first question of a bad night, and the next ones. Without NAME it lists the reports:\n"
	for _, r := range print.Reports {
		about += r.Name + ": " + r.Answers + ".\n"
	}
	return archived.With(p.Program, cli.Verb{
		Name: "report", Group: cli.GroupAudit, Usage: "answer a question about a window of time",
		About: about + "--from and --to include the moment that they name, a time or pos:N; without them it is " +
			"the whole ledger. With --json a row is an object on a line, durations in seconds; with --csv " +
			"there is a header, and what is missing is empty. silent: a worker process whose last sign of life " +
			"lies in the window. depth: from the first step in which a job changed its state to the last; where " +
			"none did, how many there are at the end of the window. " +
			"waits: from the moment at which a job was ready to its claim; another priority or payload does not " +
			"begin the wait again. causes: what jobs waited within the window, those too that were not claimed; " +
			"of several causes it is the first: dependency (other jobs, or a hold), schedule (a delay, or the " +
			"pause before the next try), paused, limit, worker. no_worker is the part of it in which no worker " +
			"process lived that had announced the queue and takes the job; in the rest all had other jobs. A client " +
			"that announced nothing counts while it holds a job of the queue. " +
			"acts: what one actor did to jobs for one reason within a minute is one act; of the last 20,000 events. " +
			"recovery: of taken jobs that were claimed again, from the end of the lease to that. left: a row for " +
			"each step and queue; the archive has the ids, which list --archived shows too. clocks: an event is " +
			"never dated before the one before it, and what a worker's own clock said is not recorded; a " +
			"clock that was behind shows in leases that seem too short. failures: of attempts that failed or " +
			"were taken back; those that were taken back or released have the reason as their code. With --cause " +
			"a row is a queue, an error code, an exit code or signal, and the last line of the detail, with … for " +
			"what differs in it; its fingerprint is for --failure and --last-failure of list and retry, of is how " +
			"many attempts of the queue ended, and last_failed how many jobs failed for good, by this in the end. " +
			"costly: of attempts that ended, those of which it is known; see attempts. backlog: " +
			"the jobs enqueued in the window, and those only that are older than --after.",
		Args: "[NAME]", MinArgs: 0, MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "at or before `TIME`"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "only of jobs of this `QUEUE`"},
			&cli.StringFlag{Name: "worker", Usage: "only of the worker with this `NAME` or boot"},
			cli.DurationFlag("after", "backlog: `D` after a job was enqueued", "1h", time.Millisecond, 0, false),
			cli.DurationFlag("every", "depth: a row for every `D`", "1m", time.Second, 0, false),
			cli.WholeFlag("limit", "longest, costly: the first `N` of them", 10, 1, math.MaxInt, "10", "n"),
			&cli.StringFlag{Name: "by", Usage: "costly: by `WHAT`: cpu, max_rss or elapsed; by default cpu"},
			&cli.StringFlag{Name: "job", Usage: "causes: only of this `JOB`"},
			cli.ListFlag("outcome", "failures: of attempts that ended as `O`: failed, reclaimed or released"),
			&cli.BoolFlag{Name: "cause", Usage: "failures: a row for each cause, with its fingerprint",
				DisableDefaultText: true},
			&cli.BoolFlag{Name: "csv", Usage: "print CSV, with a header", DisableDefaultText: true},
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger report taken --from -8h", "whose jobs were taken from a worker tonight, and who got them"},
			{"jobledger report failures --from 01:00 --to 02:00 -q mail",
				"of what jobs of this queue failed in that hour"},
			{"jobledger report failures --cause --from -1h",
				"why jobs failed in the last hour, and by what 'retry --last-failure' finds them"},
			{"jobledger report failures --outcome released --from -1d",
				"what was given back, and why: deploys, snoozes"},
			{"jobledger report causes --job 01KKQJVTX2", "how long this job waited, and for what"},
			{"jobledger report costly --by max_rss --from -1d", "which attempts needed the most memory"},
			{"jobledger report depth --from -1d -q mail --csv >depth.csv", "a day's queue depth for a spreadsheet"},
			{"jobledger report backlog --from -1d --after 15m --json", "what took longer than a quarter of an hour"},
		},
		Exits:    []int{cli.ExitNothing},
		Complete: map[string][]string{"": print.ReportNames(), "by": query.LongestBy, "outcome": query.Outcomes},
		Run:      p.report,
	})
}

func (p *Verbs) report(c *cli.Context) error {
	name := c.Args().First()
	if name == "" {
		return p.printReports()
	}
	r, ok := print.ReportNamed(name)
	if !ok {
		return cli.WithHint(cli.Usagef("there is no report %q", name), "the reports are %s",
			strings.Join(print.ReportNames(), ", "))
	}
	asked, err := reportFlags(c, r)
	if err != nil {
		return err
	}
	if c.Bool("cause") {
		r = print.FailuresByCause
	}
	var rows [][]any
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		from, to, err := p.FromTo(c)
		if err != nil {
			return err
		}
		span, err := query.Window{From: from, To: to}.Resolve(c.Context, tx, p.Now())
		if err != nil {
			return err
		}
		asked.Now = p.Now()
		made, isCopy, err := status.CopyOf(c.Context, tx)
		if err != nil {
			return err
		}
		if isCopy { // the events that made it are not part of what is looked at
			asked.Now = made.At
			if to == nil {
				span.To.Pos = min(span.To.Pos, made.Pos)
			}
		}
		if to == nil {
			span.To.At = asked.Now
		}
		if c.IsSet("job") {
			if asked.Job, err = (find.Typed(c.String("job"))).Number(c.Context, tx); err != nil {
				return err
			}
			if from == nil {
				span.From, err = projection.AtPos(c.Context, tx, asked.Job-1)
			}
			if err != nil {
				return err
			}
		}
		span.Queue, span.Worker = c.String("queue"), c.String("worker")
		asked.Span = span
		rows, err = r.Rows(c.Context, tx, asked)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case p.JSON:
		err = cli.PrintJSONOf(p.Program, rows, r.RowJSON)
	case c.Bool("csv"):
		err = r.WriteCSV(p.Stdout, rows)
	case len(rows) > 0:
		err = p.PrintTable(r.Table(rows, p.Now().Location()).Widened(c.Bool("wide")))
	}
	if err == nil && len(rows) > 0 && r.Name == "left" {
		err = p.MessageAfter("the ledger has no ids of jobs that left: 'jobledger list --archived' shows them")
	}
	if err == nil && len(rows) == 0 {
		err := cli.Exitf(cli.ExitNothing, "nothing to report")
		if r.Name == "depth" {
			err = cli.WithHint(err, "no job was enqueued, claimed or ended in this window; "+
				"'jobledger status --as-of TIME' shows what waited")
		}
		return err
	}
	return err
}

// reportFlags reads the flags of r. A flag that r does not know is an error: without effect, it would
// answer another question than the one asked.
func reportFlags(c *cli.Context, r print.Report) (asked print.Asked, err error) {
	for _, flag := range c.FlagNames() {
		if !r.Takes(flag) {
			return asked, cli.WithHint(cli.Usagef("report %s has no --%s", r.Name, flag), "%s",
				cli.SeeHelp("report"))
		}
	}
	asked = print.Asked{Limit: c.Int("limit")}
	if asked.Outcomes, err = query.ParseOutcomes(c.StringSlice("outcome")); err != nil {
		return asked, err
	}
	asked.By = c.String("by")
	if c.IsSet("by") && !slices.Contains(query.LongestBy, asked.By) {
		return asked, cli.WithHint(cli.Usagef("--by: there is no order %.40q", asked.By), "it is one of %s",
			strings.Join(query.LongestBy, ", "))
	}
	asked.Later, _ = cli.DurationValue(c, "after")
	asked.Every, _ = cli.DurationValue(c, "every")
	if asked.Every%time.Second != 0 {
		return asked, cli.Usagef("--every: %s is not in whole seconds", words.Duration(asked.Every))
	}
	return asked, nil
}

// printReports lists the reports.
func (p *Verbs) printReports() error {
	t := &cli.Table{Columns: []cli.Column{{Title: "REPORT"}, {Title: "ANSWERS"}}}
	return cli.PrintRows(p.Program, t, print.Reports, func(r print.Report) any {
		return map[string]string{"report": r.Name, "answers": r.Answers}
	}, func(r print.Report) []string { return []string{r.Name, r.Answers} })
}
