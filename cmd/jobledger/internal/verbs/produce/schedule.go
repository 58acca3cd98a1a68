package produce

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/projection"
)

// scheduleAction is one of the things that the verb schedule does.
type scheduleAction struct {
	name  string
	args  string // after the name of the action
	least int    // arguments after it
	most  int
	flags []string
	run   func(p *Verbs, c *cli.Context, args []string) error
}

// noneOfSchedule are flags of other verbs that say of a job what its schedule says, with what does it.
var noneOfSchedule = map[string]string{
	"key":    "each tick gives its job the key NAME@TIME",
	"run-at": "--cron or --every says when its jobs run, and --jitter how much later",
	"after":  "its jobs wait for no others; with --overlap wait each waits for the one before",
}

var jobFlags = []string{"queue", "tag", "priority", "max-attempts", "max-runtime", "version", "requires",
	"group", "backoff"}

func scheduleActions() []scheduleAction {
	return []scheduleAction{
		{name: "set", args: "NAME and PAYLOAD, - or -- CMD", least: 1, most: 2, run: (*Verbs).setSchedule,
			flags: slices.Concat([]string{"cron", "every", "from", "zone", "jitter", "catch-up", "within", "overlap",
				"reason", "title"}, jobFlags, formFlags())},
		{name: "list", run: (*Verbs).listSchedules, flags: []string{"as-of", "wide"}},
		{name: "show", args: "NAME", least: 1, most: 1, run: (*Verbs).showSchedule, flags: []string{"number"}},
		{name: "ticks", args: "NAME", least: 1, most: 1, run: (*Verbs).ticksOfSchedule,
			flags: []string{"number", "as-of"}},
		{name: "pause", args: "NAME", least: 1, most: 1, run: (*Verbs).pauseSchedule, flags: []string{"reason"}},
		{name: "resume", args: "NAME", least: 1, most: 1, run: (*Verbs).resumeSchedule,
			flags: []string{"reason"}},
		{name: "remove", args: "NAME", least: 1, most: 1, run: (*Verbs).removeSchedule,
			flags: []string{"reason"}},
		{name: "run", args: "NAME", least: 1, most: 1, run: (*Verbs).runSchedule},
		{name: "preview", args: "['EXPRESSION']", most: 1, run: (*Verbs).previewSchedule,
			flags: []string{"every", "zone", "from", "number"}},
		{name: "apply", args: "FILE", least: 1, most: 1, run: (*Verbs).applySchedules,
			flags: []string{"prune", "reason"}},
		{name: "import", args: "crontab [FILE]", least: 1, most: 2, run: (*Verbs).importSchedules,
			flags: []string{"system", "take-over", "finish", "prune", "queue", "catch-up", "reason"}},
	}
}

func (p *Verbs) Schedule() cli.Verb {
	names := words.Of(scheduleActions(), func(a scheduleAction) string { return a.name })
	return cli.Verb{
		Name: "schedule", Group: cli.GroupProduce, Usage: "enqueue jobs at set times",
		About: "set NAME makes a schedule be as the flags say; the same again changes nothing, and setting one " +
			"never enqueues a job. With -- CMD its jobs carry that command, as those of 'jobledger run' do: in the " +
			"queue cron, which is made, or another one for commands; they are tried once. What it runs is part of " +
			"its event, so a secret is refused: it belongs into --env-file. 'jobledger work' and " +
			"'jobledger sweep' enqueue the jobs that are due: " +
			"one for each time, however many processes there are. list, show NAME, pause NAME, resume NAME and " +
			"remove NAME do what they say; ticks NAME shows what became of the last times;" +
			" run NAME enqueues a job now, besides those times. preview shows when an " +
			"expression would tick, and needs no ledger. apply FILE sets a schedule for each line, a JSON object " +
			"with the keys " + scheduleKeys + ", and with --prune removes all others. import crontab makes one of " +
			"each line of your crontab, paused until cron does not run it any more: --take-over sees to that.\n" +
			"--cron takes minute, hour, day of the month, month and day of the week, with lists, ranges, steps and " +
			"names, or @hourly, @daily, @weekly, @monthly, @yearly. Times that came while no process looked make " +
			"one " +
			"job, for the latest (--catch-up last), one each (all), or none; what makes no job is recorded with the " +
			"reason. See 'jobledger help schedules'.",
		Args: strings.Join(names, "|") + " [NAME|EXPRESSION|FILE|crontab] [PAYLOAD | - | FILE]", MinArgs: 1,
		MaxArgs: 3,
		Flags:   scheduleFlags(),
		Rest:    "CMD ARGS…",
		RestIf: func(args, rest []string, _ map[string]bool) bool { // a payload may begin with a dash
			return len(args) > 1 && args[0] == "set" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")
		},
		Examples: []cli.Example{
			{"jobledger schedule set nightly -q backup --cron '30 2 * * *' --zone Europe/Berlin --within 6h all",
				"each night at half past two, or up to six hours later if no process ran then"},
			{"jobledger schedule set clean --cron '0 4 * * *' --zone local -- ./clean.sh --all",
				"a command, which 'jobledger work --commands -q cron' runs"},
			{"jobledger schedule set poll -q api --every 5m --overlap skip", "every five minutes, never two at once"},
			{"jobledger schedule set sync -q api --every 15m --overlap wait",
				"after the one before, if that takes longer; at most one waits"},
			{"jobledger schedule list", "all schedules, and when they tick next"},
			{"jobledger schedule preview '30 2 * * *' --zone Europe/Berlin --from 2026-03-28T00:00:00Z -n 3",
				"when that would be"},
			{"jobledger schedule apply schedules.jsonl --prune --reason 'release 17'",
				"as the file says, and no others"},
			{"jobledger schedule import crontab --take-over", "your crontab, at the same times, in place of cron"},
		},
		Exits:        []int{cli.ExitNothing, cli.ExitConflict, cli.ExitBusy},
		NamedActions: []string{"set", "show", "ticks", "pause", "resume", "remove", "run"},
		Complete: map[string][]string{"": names, "catch-up": {"last", "all", "none"},
			"overlap": {"skip", "wait", "replace", "allow"}},
		Run: p.schedule,
	}
}

func scheduleFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "cron", Usage: "when: an `EXPRESSION` of five fields, or @daily and the like"},
		cli.DurationFlag("every", "when: each `D`, counted from --from", "", time.Second, schedule.MaxWithin,
			false),
		&cli.StringFlag{Name: "from",
			Usage: "the first `TIME` of --every, by default now; of preview: where to begin"},
		&cli.StringFlag{Name: "zone", Usage: "the time `ZONE` of --cron, such as Europe/Berlin; local: that of " +
			"this machine", DefaultText: "UTC"},
		cli.DurationFlag("jitter", "run each job up to `D` later, the same each time it is asked", "", 0,
			schedule.MaxJitter, true),
		&cli.StringFlag{Name: "catch-up", Usage: "the missed ticks that still make a job: last, all or none",
			DefaultText: "last"},
		cli.DurationFlag("within", "no job for a time that is more than `D` ago", "", time.Second,
			schedule.MaxWithin,
			false),
		&cli.StringFlag{Name: "overlap",
			Usage:       "while the job before has not ended: skip, wait (for its end), replace (cancel it) or allow",
			DefaultText: "skip; allow with --catch-up all"},
		&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` of the jobs"},
		cli.ListFlag("tag", "note `NAME=VALUE` with the jobs; may be repeated"),
		cli.WholeFlag("priority", "`N` from -100 to 100; higher is claimed first", 0, -commands.MaxPriority,
			commands.MaxPriority, ""),
		cli.WholeFlag("max-attempts", "give up after `N` failures", projection.DefaultMaxAttempts, 1,
			commands.MaxMaxAttempts, "5; 1 with a command"),
		cli.DurationFlag("max-runtime", "an attempt may take `D` at most", "", time.Millisecond,
			commands.MaxRunTime,
			false),
		&cli.StringFlag{Name: "version", Usage: "only for workers of version `V`"},
		cli.ListFlag("requires", "only for workers with the capability `LABEL`; may be repeated"),
		&cli.StringFlag{Name: "group", Usage: "the `GROUP` of the jobs; groups of a queue are served in rotation"},
		&cli.StringFlag{Name: "backoff", Usage: "how long to wait after failures: `'min 1s, max 1h, factor 2'`",
			DefaultText: "that of the queue"},
		cli.WholeFlag("number", "show `N` of the next times, or of ticks the last ones", 5, 1, 1000, "", "n"),
		&cli.BoolFlag{Name: "prune", Usage: "apply, import: remove the schedules that the file has no more"},
		&cli.StringFlag{Name: "system", Usage: "import `FILE`, whose lines name a user, such as /etc/crontab"},
		&cli.BoolFlag{Name: "take-over", Usage: "import: cron stops to run the lines, and the schedules begin"},
		&cli.BoolFlag{Name: "finish", Usage: "import: only finish a --take-over that was interrupted"},
		jobverb.ReasonFlag(),
		cli.AsOfFlag(),
		cli.WideFlag(),
		&cli.StringFlag{Name: "title", Usage: "with a command: `TEXT` says what its jobs are, for ever"},
	}, jobcmd.FormFlags(), []cli.Flag{
		&cli.StringFlag{Name: "key", Hidden: true},
		&cli.StringFlag{Name: "run-at", Hidden: true},
		&cli.StringFlag{Name: "after", Hidden: true},
	})
}

// formFlags are the names of the flags about a command.
func formFlags() []string {
	return words.Of(jobcmd.FormFlags(), func(f cli.Flag) string { return f.Names()[0] })
}

// schedule finds the action and checks that the flags are among its own.
func (p *Verbs) schedule(c *cli.Context) error {
	args := c.Args().Slice()
	var names []string
	for _, a := range scheduleActions() {
		names = append(names, a.name)
		if a.name != args[0] {
			continue
		}
		if n := len(args) - 1; n < a.least || n > a.most {
			return cli.WithHint(cli.Usagef("schedule %s takes %s", a.name, cmp.Or(a.args, "no argument")), "%s",
				cli.SeeHelp("schedule"))
		}
		for _, f := range scheduleFlags() {
			name := f.Names()[0]
			if why := noneOfSchedule[name]; c.IsSet(name) && why != "" && a.name == "set" {
				return cli.Usagef("a schedule takes no --%s: %s", name, why)
			}
			if c.IsSet(name) && !slices.Contains(a.flags, name) {
				return cli.WithHint(cli.Usagef("schedule %s takes no --%s", a.name, name), "%s",
					cli.SeeHelp("schedule"))
			}
		}
		return a.run(p, c, args[1:])
	}
	err := cli.Usagef("unknown action %q; it is one of %s", args[0], strings.Join(names, ", "))
	if near := fault.Nearest(args[0], names); near != "" {
		return cli.WithHint(err, "did you mean schedule %s?", near)
	}
	return cli.WithHint(err, "%s", cli.SeeHelp("schedule"))
}

func (p *Verbs) keeper(service *commands.Service) *schedule.Keeper {
	return &schedule.Keeper{Service: service, Actor: p.Actor}
}

func (p *Verbs) applySchedules(c *cli.Context, args []string) error {
	content, done, err := p.OpenInput("the schedules", args[0])
	if err != nil {
		return err
	}
	defer done()
	specs, err := readSchedules(content)
	if err != nil {
		return err
	}
	p.sayUTC("the times of lines without a zone are", specs...)
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changes, err := p.keeper(service).Apply(c.Context, specs, c.Bool("prune"), c.String("reason"))
	if err != nil {
		return err
	}
	return p.printChanges(c, service, changes)
}
