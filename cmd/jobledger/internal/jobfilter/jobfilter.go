// Package jobfilter reads the flags that select jobs, for list and the verbs that change many jobs, and those
// that select a window of time.
package jobfilter

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/timespec"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// What --from and --to are about, as values of --by.
const (
	ByEnqueued = "enqueued"
	ByFinished = "finished"
)

// Flags returns the flags that select jobs and mean nothing else in any verb; states are the values of
// --state that its help offers.
func Flags(states []string) []cli.Flag {
	return []cli.Flag{
		cli.ListFlag("state", "only `STATE`: "+strings.Join(states, ", ")),
		cli.ListFlag("tag", "only with this tag, as `K=V`"),
		&cli.StringFlag{Name: "group", Usage: "only of this `GROUP`"},
		&cli.StringFlag{Name: "from", Usage: "only those enqueued at or after `TIME`"},
		&cli.StringFlag{Name: "to", Usage: "only those enqueued at or before `TIME`"},
		&cli.StringFlag{Name: "by", Usage: "`WHAT` --from and --to are about: enqueued or finished",
			Value: ByEnqueued, DefaultText: ByEnqueued},
		&cli.StringFlag{Name: "error", Usage: "only where the last failure has this `CODE`"},
		cli.WholeFlag("exit", "only where the command of the last failure exited with `N`", 0, 0, 255, "any"),
		&cli.StringFlag{Name: "host", Usage: "only where the owner, or the last one, ran on this `HOST`"},
	}
}

// StateNames returns the names of all states.
func StateNames() (names []string) {
	for _, s := range event.States() {
		names = append(names, s.String())
	}
	return names
}

// Read reads [Flags], except for --from and --to: see [AddWindow].
func Read(c *cli.Context) (projection.Filter, error) {
	f := projection.Filter{Error: c.String("error"), Host: c.String("host"), Group: c.String("group")}
	for _, name := range []string{"error", "host", "group"} {
		if c.IsSet(name) && c.String(name) == "" {
			return f, cli.Usagef("--%s is empty", name)
		}
	}
	if c.IsSet("exit") {
		exit := c.Int("exit")
		f.Exit = &exit
	}
	switch by := c.String("by"); {
	case by != ByEnqueued && by != ByFinished:
		return f, cli.Usagef("--by: %q is neither %s nor %s", by, ByEnqueued, ByFinished)
	case c.IsSet("by") && !c.IsSet("from") && !c.IsSet("to"):
		return f, cli.Usagef("--by says what --from and --to are about: give one of these")
	}
	for _, word := range c.StringSlice("state") {
		s, err := event.ParseState(word)
		if err != nil {
			return f, cli.WithHint(cli.Usagef("--state: there is no state %q", word), "the states are %s",
				strings.Join(StateNames(), ", "))
		}
		f.States = append(f.States, s)
	}
	for _, tag := range c.StringSlice("tag") {
		name, value, ok := strings.Cut(tag, "=")
		if !ok || name == "" {
			return f, cli.Usagef("--tag: %q is not K=V", tag)
		}
		if old, twice := f.Tags[name]; twice && old != value {
			return f, cli.Usagef("--tag: no job has both %s=%s and %s=%s", name, old, name, value)
		}
		if f.Tags == nil {
			f.Tags = make(map[string]string)
		}
		f.Tags[name] = value
	}
	return f, nil
}

// AddWindow adds what --from and --to say to f.
func AddWindow(p *cli.Program, c *cli.Context, tx *ledger.Tx, f *projection.Filter) error {
	from, to, err := p.FromTo(c)
	if err == nil && from != nil {
		err = addBound(c, tx, f, true, *from)
	}
	if err == nil && to != nil {
		err = addBound(c, tx, f, false, *to)
	}
	return err
}

// addBound adds one end of the window to f. The number of a job is the pos of its first event.
func addBound(c *cli.Context, tx *ledger.Tx, f *projection.Filter, isFrom bool, w timespec.When) error {
	pos, err := export.PosOf(c.Context, tx, w, isFrom)
	if err != nil {
		return err
	}
	finished := c.String("by") == ByFinished
	if finished && w.ByPos {
		m, err := projection.AtPos(c.Context, tx, w.Pos)
		if err != nil {
			return err
		}
		w.Time = m.At
	}
	switch {
	case !isFrom && pos == 0: // before the first event: none
		f.Before = 1
	case !isFrom: // a job is enqueued before it ends
		f.Until = pos
	case !finished:
		f.After = pos
	}
	switch {
	case finished && isFrom:
		f.FinishedFrom = w.Time
	case finished:
		f.FinishedTo = w.Time
	}
	return nil
}
