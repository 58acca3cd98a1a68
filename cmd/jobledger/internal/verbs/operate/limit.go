package operate

import (
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

func (p *Verbs) Limit() cli.Verb {
	return cli.Verb{
		Name: "limit", Group: cli.GroupOperate, Usage: "bound how many jobs of a queue run at once",
		About: "With --running the queue never has more than N jobs that are claimed or running, whatever the " +
			"number of workers and their slots; with --per-group no group of jobs (enqueue --group) has more. " +
			"With --rate N/D jobs start evenly spread, no two closer than D/N: 100/1m is one in 0.6 seconds. After " +
			"a pause --burst lets so many start at once. --per-group-rate and --per-group-burst do the same for " +
			"each group. With --ageing a low priority does not wait for ever: a job comes before one of a higher " +
			"priority if it was ready D earlier for each step between them. What a command does not " +
			"name is not limited any more. A " +
			"limit binds the jobs that wait already, at once. If more run than that, they go on, and none " +
			"starts until there are fewer. A slot is held by a live claim and by nothing else: it is free when " +
			"the job ends, is given back, cancelled, or taken back from a worker that died. --off takes the " +
			"limits away. With --group the command sets an exception: --running and --rate bound that group, in " +
			"place of --per-group and --per-group-rate; with --off there is none any more. " +
			"The history has every change, and " +
			"'jobledger verify' checks every claim against the " +
			"limit of its time.\n" +
			"Without these and --off it shows the limits: LIVE jobs hold a slot, READY jobs wait for one or " +
			"could be claimed.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`"},
			cli.WholeFlag("running", "at most `N` jobs are claimed or running at once", 0, 1, event.MaxRunning,
				"no limit"),
			cli.WholeFlag("per-group", "at most `N` jobs of each group are claimed or running at once", 0, 1,
				event.MaxRunning, "no limit"),
			&cli.StringFlag{Name: "rate", Usage: "at most N jobs start within D, as in 100/1m: `N/D`"},
			cli.WholeFlag("burst", "up to `N` of the jobs of --rate start at once after a pause", 0, 1,
				event.MaxRunning, "1"),
			&cli.StringFlag{Name: "per-group-rate", Usage: "at most N jobs of each group start within D: `N/D`"},
			cli.WholeFlag("per-group-burst", "up to `N` of the jobs of --per-group-rate start at once after a pause",
				0, 1, event.MaxRunning, "1"),
			&cli.StringFlag{Name: "ageing",
				Usage: "a job that is ready for `D` longer comes before one whose priority is higher by one"},
			&cli.StringFlag{Name: "group", Usage: "the limit is an exception for this `GROUP`"},
			&cli.BoolFlag{Name: "off", Usage: "take the limits away"},
			jobverb.ReasonFlag(),
			cli.AsOfFlag(),
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger limit -q api --running 3 --reason 'the API takes three calls at a time'",
				"no fourth job of api starts while three run"},
			{"jobledger limit -q render --running 20 --per-group 2", "no customer has more than two of the twenty"},
			{"jobledger limit -q api --running 3 --rate 100/1m", "three at a time, and a hundred a minute"},
			{"jobledger limit -q api --per-group-rate 10/1m --per-group-burst 5",
				"each customer has ten calls a minute, five of them at once"},
			{"jobledger limit -q render --group acme --running 5", "acme has more than the others"},
			{"jobledger limit -q mail --ageing 1m", "priority 0 waits for priority 10 for ten minutes at most"},
			{"jobledger limit", "all limits, and what they bind"},
			{"jobledger limit -q api --off", "as many as there are workers"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitBusy},
		Run:   p.limit,
	}
}

func (p *Verbs) limit(c *cli.Context) error {
	queue := c.String("queue")
	set := c.IsSet("running") || c.IsSet("per-group") || c.IsSet("rate") || c.IsSet("burst") ||
		c.IsSet("per-group-rate") || c.IsSet("per-group-burst") || c.IsSet("ageing")
	if queue != "" {
		if err := commands.CheckQueue(queue); err != nil {
			return err
		}
	}
	switch {
	case c.IsSet("group") && c.String("group") == "":
		return cli.Usagef("--group: the name of a group is not empty")
	case c.IsSet("group") && queue == "":
		return cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("limit"))
	case !set && !c.Bool("off"):
		return p.limits(c, queue)
	case c.IsSet("as-of"):
		return cli.Usagef("--as-of only shows limits")
	case set && c.Bool("off"):
		return cli.Usagef("--off excludes the limits")
	case queue == "":
		return cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("limit"))
	}
	if c.IsSet("group") {
		return p.limitGroup(c, queue, c.String("group"))
	}
	rate, err := rateFlags(c, "rate", "burst")
	if err != nil {
		return err
	}
	groupRate, err := rateFlags(c, "per-group-rate", "per-group-burst")
	if err != nil {
		return err
	}
	var ageing time.Duration
	if c.IsSet("ageing") {
		ageing, err = cli.ParseDuration("ageing", c.String("ageing"), time.Millisecond, event.MaxRatePer, false)
		if err != nil {
			return err
		}
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changed, err := service.Limit(c.Context, p.Actor, queue, limit.Spec{Running: c.Int("running"),
		PerGroup: c.Int("per-group"), Rate: rate, PerGroupRate: groupRate,
		Ageing: ageing.Truncate(time.Microsecond)}, c.String("reason"))
	if err != nil {
		return err
	}
	l, err := ledger.Read(c.Context, service.Store, func(tx *ledger.Tx) (limit.Limit, error) {
		return limit.Of(c.Context, tx, queue)
	})
	if err != nil {
		return err
	}
	p.Message("%s", print.LimitSet(l, changed))
	return p.JSONOnly(print.LimitSetJSON{LimitJSON: print.NewLimitJSON(l), Changed: changed})
}

// limitGroup sets or removes the exception of a group.
func (p *Verbs) limitGroup(c *cli.Context, queue, group string) error {
	if c.IsSet("per-group") || c.IsSet("per-group-rate") || c.IsSet("per-group-burst") ||
		c.IsSet("ageing") {
		return cli.Usagef("--group needs --running, --rate or --off")
	}
	rate, err := rateFlags(c, "rate", "burst")
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changed, err := service.LimitGroup(c.Context, p.Actor, queue, group,
		limit.GroupSpec{Running: c.Int("running"), Rate: rate}, c.String("reason"))
	if err != nil {
		return err
	}
	var l limit.Limit
	var live limit.Live
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if l, err = limit.Of(c.Context, tx, queue); err == nil {
			live, err = limit.CountLive(c.Context, tx, queue)
		}
		return err
	})
	if err != nil {
		return err
	}
	p.Message("%s", print.ExceptionSet(l, group, changed))
	return p.JSONOnly(print.NewExceptionSetJSON(l, group, live[group], changed))
}

// rateFlags reads the flags of a rate and of its burst.
func rateFlags(c *cli.Context, name, burst string) (r limit.Rate, err error) {
	if !c.IsSet(name) {
		if c.IsSet(burst) {
			return r, cli.Usagef("--%s goes with --%s", burst, name)
		}
		return r, nil
	}
	if r.N, r.Per, err = when.ParseRate(c.String(name)); err != nil {
		return r, cli.Usagef("--%s: %w", name, err)
	}
	r.Burst = c.Int(burst)
	return r, nil
}

// limits prints the limits of one queue, or of all.
func (p *Verbs) limits(c *cli.Context, queue string) error {
	if c.IsSet("reason") {
		return cli.Usagef("--reason goes with limits to set, or with --off")
	}
	found, m, err := cli.ReadAsOf(p.Program, c, func(tx *ledger.Tx, past cli.Past) ([]status.Limited, error) {
		return status.Limits(c.Context, tx, past.Or(p.Now()))
	})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(l status.Limited) bool { return queue != "" && l.Queue != queue })
	what := "limits"
	if c.IsSet("group") {
		what = fmt.Sprintf("exception for the group %q", c.String("group"))
		found = onlyGroup(found, c.String("group"))
	}
	when := ""
	if m.Given {
		when = " at " + words.Time(p.Local(m.At))
	}
	switch {
	case len(found) == 0 && queue != "":
		return cli.Exitf(cli.ExitNothing, "the queue %s has no %s%s", queue, what, when)
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no queue has limits%s", when)
	case !p.JSON:
		return p.PrintTable(print.Limits(found, p.Now().Location()).Widened(c.Bool("wide")))
	}
	return cli.PrintJSONOf(p.Program, found, func(l status.Limited) any {
		if m.Given {
			return print.NewLimitedThenJSON(l, m.Moment)
		}
		return print.NewLimitedJSON(l)
	})
}

// onlyGroup keeps one exception, and its queue.
func onlyGroup(found []status.Limited, group string) (only []status.Limited) {
	for _, l := range found {
		x := l.Exceptions[group]
		if l.Exceptions = map[string]limit.Exception{group: x}; len(l.ActiveExceptions()) > 0 {
			only = append(only, l)
		}
	}
	return only
}
