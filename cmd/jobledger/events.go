package main

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
)

// eventsVerb reads the ledger itself.
func eventsVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "events", Group: cli.GroupAudit, Usage: "list events, the oldest first",
		About: "--from and --to include the moment that they name; a moment is a time or a place in the ledger, pos:N. " +
			"--kind may be repeated. To page through a long ledger, give the pos of the last event seen to --after. With " +
			"--follow it goes on with the events to come until it is interrupted, or its reader goes away, and ends with 0; " +
			"started again with --after and the last pos, it misses none and repeats none.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "job", Usage: "only of this `JOB`"},
			cli.ListFlag("kind", "only of this `KIND`, such as claimed or refused"),
			&cli.StringFlag{Name: "worker", Usage: "only of the worker with this `NAME` or boot"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "only of this `QUEUE` and its jobs"},
			&cli.StringFlag{Name: "actor", Usage: "only what this `ACTOR` did; here it is no name for you"},
			&cli.StringFlag{Name: "from", Usage: "only at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only at or before `TIME`"},
			cli.WholeFlag("after", "only behind the place `POS`", 0, 0, math.MaxInt, "the beginning"),
			cli.WholeFlag("limit", "the first `N` of them", 0, 1, math.MaxInt, "all"),
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what happens from now on"},
		},
		Examples: []cli.Example{
			{"jobledger events --from -1h", "what happened in the last hour"},
			{"jobledger events --kind refused --from -1d", "writes that came too late since yesterday"},
			{"jobledger events --after 1200 --limit 500 --json", "the next page for a script"},
			{"jobledger events --follow --from -1m", "watch what happens"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Complete: func(flag string) []string {
			if flag == "kind" {
				return kindNames()
			}
			return nil
		},
		Run: p.events,
	}
}

func kindNames() (names []string) {
	for _, k := range ledger.Kinds() {
		names = append(names, k.String())
	}
	return names
}

// eventPage is how many events one snapshot gives: a reader that is slow to take them must not hold one open, or the
// -wal file grows meanwhile.
const eventPage = 5000

func (p *program) events(c *cli.Context) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var f ledger.Filter
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		f, err = p.eventFilter(c, tx)
		return err
	})
	if err != nil {
		return err
	}
	limit, printed := c.Int("limit"), 0
	ctx := c.Context
	if c.Bool("follow") {
		if c.IsSet("to") {
			return cli.Usagef("--follow and --to exclude each other")
		}
		ctx = cli.UntilSignalled(ctx)
	}
	for {
		more, err := p.eventsUpTo(ctx, service, &f, limit, &printed)
		if err != nil || !c.Bool("follow") || limit > 0 && printed == limit {
			if ctx.Err() != nil && c.Context.Err() == nil {
				return nil // interrupted, as it was meant to be
			}
			if err == nil && more {
				return p.more("there are more; go on with --after %d", f.After)
			}
			if err == nil && printed == 0 {
				return cli.Exitf(cli.ExitNothing, "no event matches")
			}
			return err
		}
		if err := p.Flush(); err != nil {
			return err
		}
		f.After = max(f.After, f.Until)
		for f.Until <= f.After {
			if cli.ReaderGone() || sleep(ctx, followPoll) != nil {
				return nil
			}
			err := service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
				f.Until, err = tx.Tail(ctx)
				return err
			})
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// followPoll is how often --follow looks for new events: one seek each.
const followPoll = 100 * time.Millisecond

// eventsUpTo prints the events that f selects, in short reads, and moves f.After along; more says that there are some
// beyond limit, 0 for no limit.
func (p *program) eventsUpTo(ctx context.Context, service *commands.Service, f *ledger.Filter, limit int, printed *int) (more bool, err error) {
	for f.After < f.Until {
		f.Limit = eventPage
		if limit > 0 {
			f.Limit = min(eventPage, limit+1-*printed) // one more, to know of it
		}
		page := make([]ledger.Event, 0, 64)
		err := service.Store.Read(ctx, func(tx *ledger.Tx) error {
			for e, err := range tx.Events(ctx, *f) {
				if err != nil {
					return err
				}
				page = append(page, e)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		for _, e := range page {
			if limit > 0 && *printed == limit {
				return true, nil
			}
			if err := p.printListed(e, *printed == 0); err != nil {
				return false, err
			}
			*printed++
			f.After = e.Pos
		}
		if len(page) < f.Limit {
			break
		}
	}
	return false, nil
}

// eventFilter reads the flags. Whatever they say, the listing ends where the ledger ends now.
func (p *program) eventFilter(c *cli.Context, tx *ledger.Tx) (f ledger.Filter, err error) {
	if err := p.CheckFromTo(c); err != nil {
		return f, err
	}
	f = ledger.Filter{Worker: c.String("worker"), Queue: c.String("queue"), Actor: c.String("actor"), After: int64(c.Int("after"))}
	for _, word := range c.StringSlice("kind") {
		k, err := ledger.ParseKind(word)
		if err != nil {
			return f, cli.WithHint(cli.Usagef("--kind: there is no kind %q", word), "the kinds are %s", strings.Join(kindNames(), ", "))
		}
		f.Kinds = append(f.Kinds, k)
	}
	if f.Until, err = tx.Tail(c.Context); err != nil {
		return f, err
	}
	if c.IsSet("job") {
		if f.Job, err = cli.FindJobNumber(c.Context, tx, c.String("job")); err != nil {
			return f, err
		}
	}
	from, given, err := p.WhenFlag(c, "from")
	if err != nil {
		return f, err
	}
	if given {
		before := from.Pos - 1
		if !from.ByPos {
			if before, err = tx.PosAt(c.Context, from.Time.Add(-1)); err != nil {
				return f, err
			}
		}
		f.After = max(f.After, before)
	}
	to, given, err := p.WhenFlag(c, "to")
	if err != nil || !given {
		return f, err
	}
	until := to.Pos
	if !to.ByPos {
		if until, err = tx.PosAt(c.Context, to.Time); err != nil {
			return f, err
		}
	}
	f.Until = min(f.Until, until)
	return f, nil
}

// printListed prints one event of a listing, as JSON or as a line for people, the first below a header.
func (p *program) printListed(e ledger.Event, first bool) error {
	if p.JSON {
		return p.PrintJSON(e)
	}
	row := func(pos, at, kind, to, job string) []string {
		return []string{render.Pad(pos, 6, true), render.Pad(at, 29, false), render.Pad(kind, 14, false), render.Pad(to, 11, false), render.Pad(job, 26, false)}
	}
	if first {
		if err := p.PrintEvent(row("POS", "TIME", "EVENT", "STATE", "JOB"), []render.Style{render.Bold, render.Bold, render.Bold, render.Bold, render.Bold}, ""); err != nil {
			return err
		}
	}
	kind, kindStyle := render.KindLabel(e)
	to, toStyle := render.StateLabel(e)
	columns := row(strconv.FormatInt(e.Pos, 10), p.EventTime(e), kind, to, string(e.Job))
	return p.PrintEvent(columns, []render.Style{render.Gray, render.Plain, kindStyle, toStyle, render.Plain}, p.Describe(e))
}

// more is a message about what was printed, so it comes after that.
func (p *program) more(format string, args ...any) error {
	err := p.Flush()
	p.Message(format, args...)
	return err
}
