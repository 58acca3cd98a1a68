package produce

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
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

var jobFlags = []string{"queue", "tag", "priority", "max-attempts", "max-runtime", "version", "requires",
	"group", "backoff"}

func scheduleActions() []scheduleAction {
	return []scheduleAction{
		{name: "set", args: "NAME [PAYLOAD | -]", least: 1, most: 2, run: (*Verbs).setSchedule,
			flags: append([]string{"cron", "every", "from", "zone", "jitter", "catch-up", "within", "overlap",
				"reason"}, jobFlags...)},
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
			"never enqueues a job. 'jobledger work' and 'jobledger sweep' enqueue the jobs that are due: " +
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
		Examples: []cli.Example{
			{"jobledger schedule set nightly -q backup --cron '30 2 * * *' --zone Europe/Berlin --within 6h all",
				"each night at half past two, or up to six hours later if no process ran then"},
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
	return []cli.Flag{
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
			commands.MaxMaxAttempts, ""),
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
	}
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
			if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(a.flags, name) {
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

func (p *Verbs) setSchedule(c *cli.Context, args []string) error {
	spec, err := p.scheduleSpec(c, args)
	if err != nil {
		return err
	}
	if err := schedule.Check(schedule.Complete(spec)); err != nil { // before a ledger is made
		return err
	}
	p.sayUTC("its times are", spec)
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changes, err := p.keeper(service).Apply(c.Context, []event.ScheduleSet{spec}, false, c.String("reason"))
	if err != nil {
		return err
	}
	return p.printChanges(c, service, changes)
}

// sayUTC says of the first of specs whose times are in UTC, because it names no zone, what they are on a
// clock of this machine, if that is another zone. subject is the beginning of the sentence.
func (p *Verbs) sayUTC(subject string, specs ...event.ScheduleSet) {
	for _, spec := range specs {
		if spec.Zone != "" || !namesHour(spec.Cron) {
			continue
		}
		times, err := schedule.Times(schedule.Complete(spec))
		if err != nil { // it has been checked
			return
		}
		said := when.InUTC(times.Next, p.Now(), p.Now().Location())
		if said == "" {
			continue
		}
		text := subject + " UTC: " + said
		if name := when.ZoneName(p.Now().Location()); name != "" {
			text += "; --zone local is " + name
		}
		p.Message("%s", text)
		return
	}
}

// zoneFlag reads --zone; local is the zone of this machine, by its name.
func (p *Verbs) zoneFlag(c *cli.Context) (string, error) {
	if !strings.EqualFold(c.String("zone"), "local") {
		return c.String("zone"), nil
	}
	name := when.ZoneName(p.Now().Location())
	if name == "" {
		return "", cli.WithHint(cli.Usagef("--zone: the zone of this machine has no name that is known"),
			"give one, such as Europe/Berlin")
	}
	return name, nil
}

// namesHour reports whether a cron expression may mean other moments in another zone.
func namesHour(cron string) bool {
	fields := strings.Fields(cron)
	return len(fields) > 1 && fields[1] != "*" || len(fields) == 1 && cron != "@hourly"
}

// scheduleSpec is the schedule as the flags have it.
func (p *Verbs) scheduleSpec(c *cli.Context, args []string) (spec event.ScheduleSet, err error) {
	spec = event.ScheduleSet{Name: args[0], Queue: c.String("queue"), Cron: c.String("cron"),
		CatchUp: c.String("catch-up"), Overlap: c.String("overlap"),
		Priority: c.Int("priority"), MaxAttempts: c.Int("max-attempts"), Version: c.String("version"),
		Requires: c.StringSlice("requires"), Group: c.String("group")}
	spec.Every, _ = cli.DurationValue(c, "every")
	spec.Jitter, _ = cli.DurationValue(c, "jitter")
	spec.Within, _ = cli.DurationValue(c, "within")
	spec.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	if spec.Backoff, err = jobverb.Backoff(c); err != nil {
		return spec, err
	}
	if spec.Zone, err = p.zoneFlag(c); err != nil {
		return spec, err
	}
	switch {
	case spec.Queue == "":
		return spec, cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("schedule"))
	case (spec.Cron == "") == (spec.Every == 0):
		return spec, cli.WithHint(cli.Usagef("give one of --cron and --every"), "%s", cli.SeeHelp("schedule"))
	}
	if spec.From, _, err = p.NextFlag(c, "from"); err != nil {
		return spec, err
	}
	if spec.Tags, err = readTags(c.StringSlice("tag")); err != nil || len(args) == 1 {
		return spec, err
	}
	payload, err := p.ReadBody("payload", args[1])
	spec.Payload = string(payload)
	return spec, err
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
