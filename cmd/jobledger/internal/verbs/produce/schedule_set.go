package produce

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
)

func (p *Verbs) setSchedule(c *cli.Context, args []string) error {
	spec, err := p.scheduleSpec(c, args)
	if err != nil {
		return err
	}
	if err := schedule.Check(schedule.Complete(spec)); err != nil { // before a ledger is made
		return err
	}
	p.sayUTC("its times are", spec)
	if spec.Form != "" {
		if err := p.UseOwnPlace(); err != nil {
			return err
		}
	}
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	if spec.Form != "" && spec.Queue == cronQueue {
		if err := p.makeCronQueue(c, service, cronQueue); err != nil {
			return err
		}
	}
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
	if len(p.Rest) > 0 && spec.Queue == "" {
		spec.Queue = cronQueue
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
	if spec.Tags, err = joblines.Tags("--tag", c.StringSlice("tag")); err != nil {
		return spec, err
	}
	if len(p.Rest) > 0 {
		return p.carryForEver(c, spec, args)
	}
	for _, name := range append(formFlags(), "title") {
		if c.IsSet(name) {
			return spec, cli.WithHint(cli.Usagef("--%s is about a command, and there is none", name),
				"a command follows --, as in 'jobledger schedule set %s … -- CMD'", spec.Name)
		}
	}
	if len(args) == 1 {
		return spec, nil
	}
	payload, err := p.ReadBody("payload", args[1])
	spec.Payload = string(payload)
	return spec, err
}

// carryForEver is spec with the command after "--", for its jobs.
func (p *Verbs) carryForEver(c *cli.Context, spec event.ScheduleSet, args []string) (event.ScheduleSet,
	error) {
	if len(args) > 1 {
		return spec, cli.Usagef("%q is a payload, and a command is one too: give one of them", args[1])
	}
	form, err := jobcmd.Form(p.Program, c)
	if err == nil {
		err = jobcmd.CheckSecrets(form)
	}
	if err != nil {
		return spec, err
	}
	payload, err := form.Encode()
	if err != nil {
		return spec, cli.Usagef("%w", err)
	}
	spec.Form, spec.Payload = event.FormArgv, string(payload)
	if !c.IsSet("max-attempts") {
		spec.MaxAttempts = 1
	}
	if title := c.String("title"); title != "" {
		spec.Tags[state.TitleTag] = title
	}
	return spec, nil
}
