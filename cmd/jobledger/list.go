package main

import (
	"context"
	"math"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// listVerb finds jobs.
func listVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "list", Group: cli.GroupSee, Usage: "list jobs, the newest first",
		About: "Jobs of all states, without payload and result; 'show' has these. TRIED is how many attempts " +
			"failed, of how many allowed. --state, --queue and --tag may be repeated: any of the states and " +
			"queues, all of the " +
			"tags." + cli.AboutAsOf,
		Flags: []cli.Flag{
			cli.ListFlag("state", "only `STATE`: "+strings.Join(stateNames(), ", ")),
			cli.ListFlag("queue", "only of this `QUEUE`", "q"),
			cli.ListFlag("tag", "only with this tag, as `K=V`"),
			&cli.StringFlag{Name: "key", Usage: "only with this `KEY`"},
			cli.WholeFlag("limit", "at most `N` jobs, 0 for all", 50, 0, math.MaxInt, ""),
			cli.AsOfFlag(),
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger list --state failed -q mail", "the last 50 jobs of the queue mail that failed for good"},
			{"jobledger list --tag customer=17 --limit 0", "every job with this tag"},
			{"jobledger list --key invoice-4711 --json", "the job with this key, for a script"},
			{"jobledger list --as-of 14:30 --state running",
				"what was running at half past two, and what became of it"},
		},
		Exits: []int{cli.ExitNothing},
		Complete: func(flag string) []string {
			if flag == "state" {
				return stateNames()
			}
			return nil
		},
		Run: func(c *cli.Context) error {
			f, err := listFilter(c)
			if err != nil {
				return err
			}
			return p.list(c, f, c.Int("limit"))
		},
	}
}

func stateNames() (names []string) {
	for _, s := range event.States() {
		names = append(names, s.String())
	}
	return names
}

func listFilter(c *cli.Context) (projection.Filter, error) {
	f := projection.Filter{Queues: c.StringSlice("queue"), Key: c.String("key")}
	for _, word := range c.StringSlice("state") {
		s, err := event.ParseState(word)
		if err != nil {
			return f, cli.WithHint(cli.Usagef("--state: there is no state %q", word), "the states are %s",
				strings.Join(stateNames(), ", "))
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

// listPage is how many jobs one snapshot gives. A reader that takes a long list slowly, such as a pager, must
// not hold a snapshot open.
const listPage = 1000

// jobPages reads the jobs that filter selects, page by page, each on a snapshot of its own.
type jobPages struct {
	service *commands.Service
	filter  projection.Filter
	past    bool
	asOf    projection.Moment // if past
	limit   int               // 0: none

	taken int
	more  bool // there are jobs beyond limit
	done  bool
}

// next returns the next page. After the last one, done is true.
func (l *jobPages) next(ctx context.Context) (page []projection.Then, err error) {
	l.filter.Limit = listPage
	if l.limit > 0 {
		l.filter.Limit = min(listPage, l.limit+1-l.taken) // one beyond limit, to know whether there are more
	}
	err = l.service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		page, err = l.read(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.done = len(page) < l.filter.Limit
	if l.limit > 0 && l.taken+len(page) > l.limit {
		page, l.done, l.more = page[:l.limit-l.taken], true, true
	}
	if l.taken += len(page); !l.done {
		l.filter.Before = page[len(page)-1].N
	}
	return page, nil
}

func (l *jobPages) read(ctx context.Context, tx *ledger.Tx) ([]projection.Then, error) {
	if l.past {
		return projection.ListAsOf(ctx, tx, l.filter, l.asOf)
	}
	jobs, err := projection.List(ctx, tx, l.filter)
	page := make([]projection.Then, len(jobs))
	for i, j := range jobs {
		page[i].Job = j
	}
	return page, err
}

// list prints up to limit jobs, 0 for all.
func (p *program) list(c *cli.Context, f projection.Filter, limit int) error {
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	asOf, past, err := p.AsOf(c, service)
	if err != nil {
		return err
	}
	then := p
	if past {
		then = p.at(asOf)
	} else if then, err = p.atCopy(c, service); err != nil {
		return err
	}
	t := layout.Jobs(past)
	pages := jobPages{service: service, filter: f, past: past, asOf: asOf, limit: limit}
	for !pages.done {
		page, err := pages.next(c.Context)
		if err != nil {
			return err
		}
		for _, j := range page {
			if !p.JSON {
				layout.AddJob(t, j, past, then.Now())
			} else if err := p.PrintJSON(layout.JobJSON(j, past)); err != nil {
				return err
			}
		}
	}
	if pages.taken == 0 {
		return cli.Exitf(cli.ExitNothing, "no job matches")
	}
	if !p.JSON {
		err = p.PrintTable(t.Widened(c.Bool("wide")))
	}
	if err == nil && pages.more {
		return p.more("%s; --limit 0 shows all", moreThan(limit, "job"))
	}
	return err
}

// moreThan says that there is more than the n things that were printed.
func moreThan(n int, thing string) string {
	if n == 1 {
		return "there is more than 1 " + thing
	}
	return "there are more than " + render.Count(int64(n), thing)
}
