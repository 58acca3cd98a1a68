package operate

import (
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/defaults"
)

// Queue sets and shows what the jobs of a queue get that set nothing themselves.
func (p *Verbs) Queue() cli.Verb {
	return cli.Verb{
		Name: "queue", Group: cli.GroupOperate, Usage: "set what the jobs of a queue get by default",
		About: "'queue set' says how often a job of the queue is tried, how long an attempt may take, and how " +
			"long a job waits after its failures, for jobs that do not say so themselves. It concerns jobs that are " +
			"enqueued from now on: each job keeps what it was enqueued with. A command sets all three: what it does " +
			"not name is as if the queue had no defaults, and --off takes them all away.\n" +
			"--backoff waits for min after the first failure, after each further one factor times as long, up to " +
			"max, each time 20 % more or less. What it leaves out is as without it: min 1s, max 1h, factor 2.\n" +
			"The jobs of a schedule take the time and the backoff of their queue, unless it says its own; how often " +
			"they are tried is part of the schedule.\n" +
			"--commands makes it a queue for jobs that carry their commands, and for no others; unless it has a " +
			"default of attempts, they are then tried once. --no-commands undoes that. Neither changes the rest, " +
			"and --off leaves it as it is. It gives no right: what a worker runs is for its own command line to " +
			"say.\n" +
			"'queue show' shows the defaults of the queue, or of all.",
		Args: "set|show", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`"},
			cli.WholeFlag("max-attempts", "give up after `N` failures", 0, 1, commands.MaxMaxAttempts,
				"as without it"),
			cli.DurationFlag("max-runtime", "an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			&cli.StringFlag{Name: "backoff", Usage: "how long to wait after failures: `'min 1s, max 1h, factor 2'`"},
			&cli.BoolFlag{Name: "commands", Usage: "its jobs carry their commands, and it takes no others"},
			&cli.BoolFlag{Name: "no-commands", Usage: "its jobs carry no commands"},
			&cli.BoolFlag{Name: "off", Usage: "take the defaults away"},
			jobverb.ReasonFlag(),
			cli.AsOfFlag(),
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger queue set -q mail --max-runtime 5m --max-attempts 8 --backoff 'min 1s, max 1h, factor 2'",
				"eight tries of five minutes each"},
			{"jobledger queue show", "the defaults of all queues"},
			{"jobledger queue set -q mail --off", "remove all defaults of the queue"},
			{"jobledger queue set -q nightly --commands", "for jobs that carry their commands"},
		},
		Exits:    []int{cli.ExitNothing, cli.ExitBusy},
		Complete: map[string][]string{"": {"set", "show"}},
		Run:      p.queue,
	}
}

func (p *Verbs) queue(c *cli.Context) error {
	queue := c.String("queue")
	if queue != "" {
		if err := commands.CheckQueue(queue); err != nil {
			return err
		}
	}
	values := slices.ContainsFunc([]string{"max-attempts", "max-runtime", "backoff"}, c.IsSet)
	marks := c.IsSet("commands") || c.IsSet("no-commands")
	switch action := c.Args().First(); {
	case action == "show" && (values || marks || c.Bool("off") || c.IsSet("reason")):
		return cli.WithHint(cli.Usagef("queue show changes nothing"), "%s", cli.SeeHelp("queue"))
	case action == "show":
		return p.showDefaults(c, queue)
	case action != "set":
		return cli.WithHint(cli.Usagef("unknown action %q; it is one of set, show", action), "%s",
			cli.SeeHelp("queue"))
	case c.IsSet("as-of"):
		return cli.Usagef("--as-of goes with queue show")
	case queue == "":
		return cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("queue"))
	case values && c.Bool("off"):
		return cli.Usagef("--off excludes the defaults")
	case marks && (values || c.Bool("off") || c.IsSet("commands") && c.IsSet("no-commands")):
		return cli.Usagef("--commands and --no-commands go alone: the rest is set by another 'queue set'")
	case marks:
		on := c.Bool("commands") || c.IsSet("no-commands") && !c.Bool("no-commands")
		return p.setDefaults(c, queue, func(s *commands.Service) (bool, error) {
			return s.SetCommands(c.Context, p.Actor, queue, on, c.String("reason"))
		})
	case !values && !c.Bool("off"):
		return cli.WithHint(
			cli.Usagef("give at least one of --max-attempts, --max-runtime and --backoff, or --off, or --commands"),
			"%s", cli.SeeHelp("queue"))
	}
	to := defaults.Spec{MaxAttempts: c.Int("max-attempts")}
	to.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	var err error
	if to.Backoff, err = jobverb.Backoff(c); err != nil {
		return err
	}
	return p.setDefaults(c, queue, func(s *commands.Service) (bool, error) {
		return s.SetDefaults(c.Context, p.Actor, queue, to, c.String("reason"))
	})
}

func (p *Verbs) setDefaults(c *cli.Context, queue string, set func(*commands.Service) (bool, error)) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changed, err := set(service)
	if err != nil {
		return err
	}
	var d defaults.Defaults
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		set, err := defaults.Current(c.Context, tx)
		if d = set[queue]; d.Queue == "" {
			d.Queue = queue
		}
		return err
	})
	if err != nil {
		return err
	}
	p.Message("%s", print.DefaultsSet(d, changed))
	return p.JSONOnly(print.DefaultsSetJSON{DefaultsJSON: print.NewDefaultsJSON(d), Changed: changed})
}

// showDefaults prints the defaults of one queue, or of all.
func (p *Verbs) showDefaults(c *cli.Context, queue string) error {
	set, m, err := cli.ReadAsOf(p.Program, c, func(tx *ledger.Tx, past cli.Past) (defaults.Set, error) {
		return defaults.At(c.Context, tx, past.Or(p.Now()).Pos)
	})
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(set.List(), func(d defaults.Defaults) bool {
		return queue != "" && d.Queue != queue
	})
	when := ""
	if m.Given {
		when = " at " + words.Time(p.Local(m.At))
	}
	switch {
	case len(found) == 0 && queue != "":
		return cli.Exitf(cli.ExitNothing, "the queue %s has no defaults%s", queue, when)
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no queue has defaults%s", when)
	case !p.JSON:
		return p.PrintTable(print.Defaults(found, p.Now().Location()).Widened(c.Bool("wide")))
	}
	return cli.PrintJSONOf(p.Program, found, func(d defaults.Defaults) any {
		if m.Given {
			return print.NewDefaultsThenJSON(d, m.Moment)
		}
		return print.NewDefaultsJSON(d)
	})
}
