package see

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/query"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// Status is the first thing to look at when something is wrong.
func (p *Verbs) Status() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "status", Group: cli.GroupSee, Usage: "show how things stand in every queue",
		About: "READY jobs could be claimed now, and OLDEST is how long the first of them has been waiting; " +
			"LATER are those whose time has not come. Below the table stands what needs attention, as doctor " +
			"says it: queues that fail, are late or are paused, leases that were not swept, silent workers, jobs " +
			"that failed for good or that no worker takes, schedules that are not carried out. At most eight lines " +
			"are printed, the most urgent first." + cli.AboutAsOf + "\n" +
			"--watch goes on until interrupted, every D (2s by default): on a terminal over the last picture, else " +
			"below it.",
		Args: "[D]", MaxArgs: 1,
		Flags: []cli.Flag{cli.AsOfFlag(), &cli.BoolFlag{Name: "watch", Usage: "show it again every D"},
			&cli.BoolFlag{Name: "groups", Usage: "the groups of one queue, with their queued and live jobs"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE` of --groups"}},
		Examples: []cli.Example{
			{"jobledger status", "a line for each queue, and what may need attention"},
			{"jobledger status --watch 5s", "again every five seconds, until interrupted"},
			{"jobledger status --groups -q mail",
				"a line for each group of mail: its jobs, and when its next may start"},
			{"jobledger status --json", "an object for each queue"},
			{"jobledger status --as-of 14:30", "how things stood at half past two, and how many jobs there are now"},
		},
		Exits: []int{cli.ExitNothing},
		Run: func(c *cli.Context) error {
			switch {
			case c.Bool("groups") && !c.IsSet("queue"):
				return cli.Usagef("--groups needs a queue: -q QUEUE")
			case c.IsSet("queue") && !c.Bool("groups"):
				return cli.WithHint(cli.Usagef("--queue (-q) is the queue of --groups; give both"),
					"'jobledger queues' has a line for each queue, and 'jobledger list -q QUEUE' its jobs")
			case c.Bool("groups") && c.Bool("watch"):
				return cli.Usagef("--watch and --groups cannot be combined")
			case c.Bool("groups"):
				return p.groups(c, c.String("queue"))
			case c.Bool("watch") && c.IsSet("as-of"):
				return cli.Usagef("--watch and --as-of cannot be combined")
			case c.Bool("watch"):
				return p.Watch(c.Context, c.Args().First(),
					func(draft *cli.Program) error { return (&Verbs{draft}).status(c) })
			case c.Args().Present():
				return cli.WithHint(cli.Usagef("unexpected argument %q", c.Args().First()), "%s", cli.SeeHelp("status"))
			}
			return p.status(c)
		},
	})
}

func (p *Verbs) status(c *cli.Context) error {
	var absent projection.Absent
	past, err := p.statusNowOrThen(c, &absent)
	if err != nil {
		return err
	}
	what := "are not counted"
	switch {
	case past && absent.Counted:
		what = "are counted then, and not now"
	case past:
		what = "are not counted, then and now"
	}
	return archived.Note(p.Program, absent, what)
}

// statusNowOrThen prints the status, past if it is as of a moment, and says which jobs are not in it.
func (p *Verbs) statusNowOrThen(c *cli.Context, absent *projection.Absent) (isPast bool, err error) {
	var queues []status.Queue
	var problems []verdict.Problem
	var last event.Event
	var past cli.Past
	err = p.Read(c.Context, func(tx *ledger.Tx) error {
		var err error
		if past, err = p.PastFlag(c, tx); err != nil {
			return err
		}
		if *absent, err = status.AbsentAsOf(c.Context, tx, past.Given); err != nil {
			return err
		}
		if past.Given {
			return p.statusThen(c.Context, tx, past)
		}
		if last, _, err = tx.OneEvent(c.Context, ledger.Filter{Last: true}); err != nil {
			return err
		}
		queues, problems, err = p.readStatus(c.Context, tx, projection.Now(p.Now()))
		return err
	})
	switch {
	case err != nil || past.Given:
		return past.Given, err
	case !p.JSON:
		return false, p.printStatus(queues, problems, last)
	}
	return false, cli.PrintJSONOf(p.Program, queues, func(q status.Queue) any {
		return print.StatusJSON(q, past, p.Now())
	})
}

// problemEvents is how many events of the day before are read to know what is normal.
const problemEvents = 20_000

// readStatus reads the queues and, unless it is for JSON, what needs attention.
func (p *Verbs) readStatus(ctx context.Context, tx *ledger.Tx, m projection.Moment) (queues []status.Queue,
	problems []verdict.Problem, err error) {
	if p.JSON {
		queues, err = status.Queues{At: m}.Read(ctx, tx)
		return queues, nil, err
	}
	queues, workers, err := status.Both{At: m}.Read(ctx, tx)
	if _, archived := errors.AsType[*projection.ArchivedError](err); err != nil && !archived {
		return queues, nil, err
	}
	problems, err = query.Problems{At: m, Most: problemEvents, Queues: queues, Workers: workers}.Read(ctx, tx)
	return queues, problems, err
}

// statusThen prints how things stood at m, and how many jobs there are now. What it holds of the ledger by
// then is in memory, so that a slow reader holds no snapshot open.
func (p *Verbs) statusThen(ctx context.Context, tx *ledger.Tx, past cli.Past) error {
	m := past.Moment
	found, problems, err := p.readStatus(ctx, tx, m)
	if err != nil {
		return err
	}
	then := p.at(m)
	if p.JSON {
		return cli.PrintJSONOf(p.Program, found, func(q status.Queue) any {
			return print.StatusJSON(q, past, p.Now())
		})
	}
	if len(found) == 0 {
		p.Message("no jobs yet at pos %d", m.Pos)
		return nil
	}
	last, _, err := tx.OneEvent(ctx, ledger.Filter{Until: m.Pos, Last: true})
	if err != nil {
		return err
	}
	header := p.Moment(m)
	if past.Copy {
		header = fmt.Sprintf("copy of %s %s", past.From, header)
	}
	if err := p.PrintLine(header); err != nil {
		return err
	}
	if err := then.printStatus(found, problems, last); err != nil {
		return err
	}
	if past.Copy {
		return nil
	}
	if _, err := p.Stdout.WriteString("\n"); err != nil {
		return err
	}
	return p.PrintTable(print.CountsNow(found))
}

func (p *Verbs) printStatus(queues []status.Queue, problems []verdict.Problem, last event.Event) error {
	if len(queues) == 0 {
		p.Message("no jobs yet")
		return p.printConcerns(nil, problems)
	}
	t, total := print.Status(queues, p.Now())
	if err := p.PrintTable(t); err != nil {
		return err
	}
	if _, err := p.Stdout.WriteString("\n"); err != nil {
		return err
	}
	if err := p.printConcerns(queues, problems); err != nil {
		return err
	}
	if err := p.PrintLine("last hour: " + state.Activity(total.LastHour)); err != nil {
		return err
	}
	return p.PrintLine(fmt.Sprintf("last event: %s, %s (pos %d)", last.Kind(), words.AgeOrOn(last.At, p.Now()),
		last.Pos))
}

// printConcerns prints what may need attention, and what is good to know.
func (p *Verbs) printConcerns(queues []status.Queue, problems []verdict.Problem) error {
	var needs, notes []state.Concern
	for _, one := range problems {
		if c := state.Say(one, p.Now()); c.Level > state.Info {
			needs = append(needs, c)
		} else {
			notes = append(notes, c)
		}
	}
	for _, q := range queues {
		notes = append(notes, state.Notes(q, p.Now())...)
	}
	more := state.More(len(needs))
	if needs = needs[:min(len(needs), state.MostLines)]; more != "" {
		needs = append(needs, state.Concern{Text: more})
	}
	for _, c := range append(needs, notes...) {
		text := p.Paint(concernStyles[c.Level], words.Escape(c.Line()))
		if _, err := p.Stdout.WriteString(text + "\n"); err != nil {
			return err
		}
	}
	return nil
}

var concernStyles = map[state.Level]words.Style{state.Warning: words.Yellow, state.Problem: words.Red}

// groups prints the groups of a queue.
func (p *Verbs) groups(c *cli.Context, queue string) error {
	if err := commands.CheckQueue(queue); err != nil {
		return err
	}
	var found []group.Waiting
	var limits limit.Limit
	var now time.Time
	err := p.Read(c.Context, func(tx *ledger.Tx) error {
		past, err := p.PastFlag(c, tx)
		if err == nil {
			now = past.Or(p.Now()).At
			found, limits, err = status.Groups(c.Context, tx, queue, past.Or(p.Now()))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return cli.Exitf(cli.ExitNothing, "no group of the queue %s has jobs that wait or run", queue)
	case !p.JSON:
		return p.PrintTable(print.Groups(found, limits, p.Local(now)))
	}
	return cli.PrintJSONOf(p.Program, found, func(g group.Waiting) any { return print.NewGroupJSON(queue, g) })
}
