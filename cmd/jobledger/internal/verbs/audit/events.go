package audit

import (
	"context"
	"math"
	"strconv"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Events reads the ledger itself.
func (p *Verbs) Events() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "events", Group: cli.GroupAudit, Usage: "list events, the oldest first",
		About: "--from and --to include the moment that they name; a moment is a time or a place in the ledger, " +
			"pos:N. --kind may be repeated; --kind=-heartbeat " +
			"leaves that kind out. To page through a long ledger, give the pos of the last event seen to " +
			"--after. With --follow it goes on with the events to come until it is interrupted, or its reader goes " +
			"away, and ends with 0; started again with --after and the last pos, it misses none and repeats none. " +
			"What began before --from and lasted, such as a pause, is not an event of that window: see " +
			"'queues --as-of'. With --as-of it shows only what was recorded up to that moment.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "job", Usage: "only of this `JOB`"},
			cli.ListFlag("kind", "only of this `KIND`, such as claimed or refused; with - before it, all others"),
			&cli.StringFlag{Name: "worker", Usage: "only of the worker with this `NAME` or boot"},
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "only of this `QUEUE` and its jobs"},
			&cli.StringFlag{Name: "actor", Usage: "only what this `ACTOR` did; it does not set your own name here"},
			&cli.StringFlag{Name: "from", Usage: "only at or after `TIME`"},
			&cli.StringFlag{Name: "to", Usage: "only at or before `TIME`"},
			cli.AsOfFlag(),
			cli.WholeFlag("after", "only after the position `POS`", 0, 0, math.MaxInt, "the beginning"),
			cli.WholeFlag("limit", "the first `N` of them", 0, 1, math.MaxInt, "all", "n"),
			cli.WholeFlag("last", "the last `N` of them; without N, those of the newest job", 0, 1,
				math.MaxInt, "all"),
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what happens from now on"},
		},
		Examples: []cli.Example{
			{"jobledger events --from -1h", "what happened in the last hour"},
			{"jobledger events --kind refused --from -1d", "writes that came too late since yesterday"},
			{"jobledger events --after 1200 --limit 500 --json", "the next page for a script"},
			{"jobledger events --follow --from -1m --kind=-heartbeat", "watch what happens, without heartbeats"},
		},
		Exits:    []int{cli.ExitNothing, cli.ExitNoJob},
		Complete: map[string][]string{"kind": find.KindNames()},
		Run:      p.events,
	})
}

func (p *Verbs) events(c *cli.Context) error {
	for _, end := range []string{"to", "as-of"} {
		if c.Bool("follow") && c.IsSet(end) {
			return cli.Usagef("--follow and --%s cannot be combined", end)
		}
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	l := eventListing{Verbs: p, Reader: find.Reader{Store: service.Store, Limit: c.Int("limit")}}
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		l.filter, err = p.eventFilter(c, tx)
		return err
	})
	if err != nil {
		return err
	}
	if c.Bool("follow") && service.Store.Of != nil {
		return l.followAfter(c.Context, service.Store.Of)
	}
	if c.Bool("follow") {
		return l.follow(c.Context)
	}
	err = l.print(c.Context)
	switch {
	case err != nil:
		return err
	case l.More:
		return l.sayMore()
	case l.Taken == 0:
		return cli.Exitf(cli.ExitNothing, "no event matches")
	}
	return nil
}

// eventListing prints the events that filter selects. It moves filter.After to the last one printed.
type eventListing struct {
	*Verbs
	find.Reader
	filter ledger.Filter
}

// print prints the events up to filter.Until.
func (l *eventListing) print(ctx context.Context) error {
	for e, err := range l.Reader.Events(ctx, &l.filter) {
		if err == nil {
			err = l.printListed(e, l.Taken == 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followAfter prints the events of a copy that includes the archive, and then follows the original ledger.
func (l *eventListing) followAfter(ctx context.Context, of *ledger.Store) error {
	if err := l.print(ctx); err != nil {
		return err
	}
	if l.Full() {
		if l.More {
			return l.sayMore()
		}
		return nil
	}
	l.filter.After = max(l.filter.After, l.filter.Until)
	l.Store = of
	l.filter.Until = l.filter.After
	return l.follow(ctx)
}

// follow prints the events there are and those to come, until limit is reached, it is interrupted or its
// reader is gone.
func (l *eventListing) follow(ctx context.Context) error {
	following := cli.UntilSignalled(ctx)
	outage := &await.Outage{Say: l.Message}
	end := await.SeenEnd{Pos: l.filter.Until}
	for {
		err := l.print(following)
		if err == nil {
			outage.Over()
		} else if outlast := outage.Outlast(following, l.Store, err); outlast == nil {
			continue // behind the last one that was printed
		}
		if err != nil || l.Full() {
			switch {
			case following.Err() != nil && ctx.Err() == nil: // interrupted, which is the orderly end
				return nil
			case err == nil && l.More:
				return l.sayMore()
			}
			return err
		}
		if err := l.Flush(); err != nil {
			return err
		}
		l.filter.After = max(l.filter.After, l.filter.Until)
		l.filter.Until, err = await.Longer(following, l.Store, l.filter.After, &end, outage, cli.ReaderGone)
		if err != nil || l.filter.Until <= l.filter.After { // interrupted, or its reader is gone
			return err
		}
	}
}

func (l *eventListing) sayMore() error {
	return l.MessageAfter("there are more; go on with --after %d", l.filter.After)
}

// eventFilter reads the flags.
func (p *Verbs) eventFilter(c *cli.Context, tx *ledger.Tx) (f ledger.Filter, err error) {
	asked, err := jobverb.Asked(p.Program, c, find.EventFields)
	if err != nil {
		return f, err
	}
	q, err := find.Events(asked, p.Now())
	if err == nil && c.IsSet("job") {
		q.Filter.Job, err = find.Typed(c.String("job")).Number(c.Context, tx)
	}
	if err != nil {
		return f, err
	}
	return q.Resolve(c.Context, tx, p.Now())
}

// printListed prints one event of a listing, as JSON or as a line for people, the first below a header.
func (p *Verbs) printListed(e event.Event, first bool) error {
	if p.JSON {
		return p.PrintJSON(e)
	}
	row := func(pos, at, kind, to, job string) []string {
		return []string{words.Pad(pos, 6, true), words.Pad(at, 29, false), words.Pad(kind, 14, false),
			words.Pad(to, 11, false), words.Pad(job, 26, false)}
	}
	if first {
		if err := p.PrintEvent(row("POS", "TIME", "EVENT", "STATE", "JOB"), []words.Style{words.Bold, words.Bold,
			words.Bold, words.Bold, words.Bold}, ""); err != nil {
			return err
		}
	}
	kind, kindStyle := words.KindLabel(e)
	to, toStyle := words.StateLabel(e)
	columns := row(strconv.FormatInt(e.Pos, 10), p.FormatMillis(e.At), kind, to, string(e.Job))
	return p.PrintEvent(columns, []words.Style{words.Gray, words.Plain, kindStyle, toStyle, words.Plain},
		p.Describe(e))
}
