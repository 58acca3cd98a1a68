package produce

import (
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// printChanges says what was done with each schedule.
func (p *Verbs) printChanges(c *cli.Context, service *commands.Service, changes []schedule.Change) error {
	for _, change := range changes {
		text := change.Done
		switch {
		case change.Done == schedule.Removed:
		case change.Paused:
			text += "; it is paused"
		case !change.Next.IsZero():
			zone := print.ScheduleZone(change.Spec, p.Now().Location())
			text += "; next at " + words.Time(change.Next.In(zone))
		default:
			text += "; it never ticks again"
		}
		p.Message("schedule %s: %s", change.Spec.Name, text)
	}
	if !p.JSON {
		return nil
	}
	return service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		for _, change := range changes {
			shown, err := scheduleJSON(c, tx, change.Schedule)
			if err != nil {
				return err
			}
			shown.Done = change.Done
			if err := p.PrintJSON(shown); err != nil {
				return err
			}
		}
		return nil
	})
}

// scheduleJSON is s for programs.
func scheduleJSON(c *cli.Context, tx *ledger.Tx, s schedules.Schedule) (print.ScheduleJSON, error) {
	id, err := s.LastJobID(c.Context, tx)
	return print.NewScheduleJSON(s, id), err
}

func (p *Verbs) listSchedules(c *cli.Context, _ []string) error {
	return p.Read(c.Context, func(tx *ledger.Tx) error {
		past, err := p.PastFlag(c, tx)
		if err != nil {
			return err
		}
		then := p.at(past.Or(p.Now()))
		list, err := schedules.At(c.Context, tx, past.Or(p.Now()).Pos)
		switch {
		case err != nil:
			return err
		case len(list) == 0 && past.Given:
			return cli.Exitf(cli.ExitNothing, "there was no schedule then")
		case len(list) == 0:
			return cli.Exitf(cli.ExitNothing, "no schedule is set")
		case !p.JSON:
			return p.PrintTable(print.Schedules(list, then.Now()).Widened(c.Bool("wide")))
		}
		for _, s := range list {
			shown, err := scheduleJSON(c, tx, s)
			if err != nil {
				return err
			}
			if past.Given {
				shown.AsOf = words.TimeOrNull(past.At)
			}
			if err := p.PrintJSON(shown); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *Verbs) showSchedule(c *cli.Context, args []string) error {
	if err := schedule.CheckName(args[0]); err != nil {
		return err
	}
	return p.Read(c.Context, func(tx *ledger.Tx) error {
		s, err := schedules.Get(c.Context, tx, args[0])
		if err != nil {
			return err
		}
		if !s.Exists() {
			return cli.Exitf(cli.ExitNothing, "no such schedule: %s", args[0])
		}
		id, err := s.LastJobID(c.Context, tx)
		if err != nil {
			return err
		}
		upcoming := schedule.Upcoming(s, time.Time{}, c.Int("number"))
		if !p.JSON {
			return p.PrintPairs(print.Schedule(s, string(id), upcoming, p.Now())...)
		}
		shown := print.NewScheduleJSON(s, id)
		shown.Upcoming = words.Of(upcoming, event.FormatTime)
		return p.PrintJSON(shown)
	})
}

// ticksOfSchedule prints what became of the last ticks of a schedule.
func (p *Verbs) ticksOfSchedule(c *cli.Context, args []string) error {
	if err := schedule.CheckName(args[0]); err != nil {
		return err
	}
	return p.Read(c.Context, func(tx *ledger.Tx) error {
		past, err := p.PastFlag(c, tx)
		if err != nil {
			return err
		}
		q := schedules.Ticks{At: past.Or(p.Now()), Last: c.Int("number")}
		if q.Of, err = schedules.Named(c.Context, tx, q.At, args[0]); err != nil {
			return err
		}
		if len(q.Of) == 0 {
			return cli.Exitf(cli.ExitNothing, "no such schedule: %s", args[0])
		}
		found, err := q.Read(c.Context, tx)
		if err != nil {
			return err
		}
		ticks := found.By[args[0]]
		switch {
		case len(ticks) == 0:
			return cli.Exitf(cli.ExitNothing, "%s has not ticked yet", args[0])
		case !p.JSON:
			return p.PrintTable(print.Ticks(ticks, p.at(q.At).Now()))
		}
		for _, t := range ticks {
			if err := p.PrintJSON(print.NewTickJSON(t)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *Verbs) pauseSchedule(c *cli.Context, args []string) error {
	return p.changeSchedule(c, func(k *schedule.Keeper) (schedules.Schedule, bool, error) {
		return k.Suspend(c.Context, args[0], c.String("reason"))
	})
}

func (p *Verbs) resumeSchedule(c *cli.Context, args []string) error {
	return p.changeSchedule(c, func(k *schedule.Keeper) (schedules.Schedule, bool, error) {
		return k.Resume(c.Context, args[0], c.String("reason"))
	})
}

// changeSchedule pauses or resumes a schedule.
func (p *Verbs) changeSchedule(c *cli.Context,
	change func(*schedule.Keeper) (schedules.Schedule, bool, error)) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	s, changed, err := change(p.keeper(service))
	if err != nil {
		return err
	}
	done := schedule.Unchanged
	if changed {
		done = schedule.Changed
	}
	return p.printChanges(c, service, []schedule.Change{{Schedule: s, Done: done}})
}

func (p *Verbs) removeSchedule(c *cli.Context, args []string) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	if err := p.keeper(service).Remove(c.Context, args[0], c.String("reason")); err != nil {
		return err
	}
	p.Message("schedule %s: removed", args[0])
	return nil
}

func (p *Verbs) runSchedule(c *cli.Context, args []string) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	j, err := p.keeper(service).Run(c.Context, args[0], ulid.Make().String())
	if err != nil {
		return err
	}
	return p.printEnqueued(commands.Enqueued{Job: j})
}

func (p *Verbs) previewSchedule(c *cli.Context, args []string) error {
	spec := event.ScheduleSet{Name: "preview", Queue: "preview"}
	spec.Every, _ = cli.DurationValue(c, "every")
	from, given, err := p.NextFlag(c, "from")
	if err != nil {
		return err
	}
	if spec.Zone, err = p.zoneFlag(c); err != nil {
		return err
	}
	if !given {
		from = p.Now()
	}
	switch {
	case len(args) == 1 && spec.Every == 0:
		spec.Cron = args[0]
	case len(args) == 0 && spec.Every > 0:
		spec.From = from
	default:
		return cli.WithHint(cli.Usagef("give an expression or --every"), "%s", cli.SeeHelp("schedule"))
	}
	if err := schedule.Check(schedule.Complete(spec)); err != nil {
		return err
	}
	p.sayUTC("times are", spec)
	spec = schedule.Complete(spec)
	ticks, err := print.Preview(spec, from, c.Int("number"))
	if err != nil {
		return err
	}
	for _, t := range ticks {
		if shown := print.NewPreviewJSON(spec, t); p.JSON {
			err = p.PrintJSON(shown)
		} else {
			err = p.PrintLine(shown.Local)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
