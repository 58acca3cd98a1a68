package main

import (
	"context"
	"math"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// listVerb finds jobs.
func listVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "list", Group: cli.GroupSee, Usage: "list jobs, the newest first",
		About: "Jobs of all states, without payload and result; 'show' has these. TRIED is how many attempts " +
			"failed, of how many allowed. --state, --queue and --tag may be repeated: any of the states and " +
			"queues, all of the tags. WHEN is the time that matters in that state: its distance from now up to " +
			"48 hours, beyond that the date. ERROR is the code of the last failure, and 'exit N' where a " +
			"command exited. --from and --to include the moment that they name, which may be pos:N; --host, " +
			"--error and --exit are about the last claim and the last failure." + cli.AboutAsOf,
		Flags: append(listFlags(),
			cli.WholeFlag("limit", "at most `N` jobs, 0 for all", 50, 0, math.MaxInt, ""),
			cli.AsOfFlag(),
			cli.WideFlag(),
		),
		Examples: []cli.Example{
			{"jobledger list --state failed -q mail", "the last 50 jobs of the queue mail that failed for good"},
			{"jobledger list --state failed --by finished --from 02:00 --to 04:00",
				"what failed for good between two and four"},
			{"jobledger list --exit 7 --host alpha --from -1d",
				"what was enqueued since yesterday, and last failed with exit code 7 on this host"},
			{"jobledger list --tag customer=17 --limit 0", "every job with this tag"},
			{"jobledger list --key invoice-4711 --json", "the job with this key, for a script"},
			{"jobledger list --as-of 14:30 --state running",
				"what was running at half past two, and what became of it"},
		},
		Exits: []int{cli.ExitNothing},
		Complete: func(flag string) []string {
			switch flag {
			case "state":
				return stateNames()
			case "by":
				return []string{byEnqueued, byFinished}
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

	exits map[int64]projection.Exit // of the jobs of the last page
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
		if page, err = l.read(ctx, tx); err == nil {
			l.exits, err = l.readExits(ctx, tx, page)
		}
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

// readExits returns how the commands of the jobs of page ended when they failed last.
func (l *jobPages) readExits(ctx context.Context, tx *ledger.Tx,
	page []projection.Then) (map[int64]projection.Exit, error) {
	jobs := make([]projection.Job, len(page))
	for i, j := range page {
		jobs[i] = j.Job
	}
	return projection.LastExits(ctx, tx, jobs, l.asOf.Pos)
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
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error { return p.listWindow(c, tx, &f) })
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
				layout.AddJob(t, j, pages.exits[j.N], past, then.Now())
			} else if err := p.PrintJSON(layout.JobJSON(j, pages.exits[j.N], past)); err != nil {
				return err
			}
		}
	}
	if pages.taken == 0 {
		return p.noJobMatches(c.Context, service, f.Queues)
	}
	if !p.JSON {
		err = p.PrintTable(t.Widened(c.Bool("wide")))
	}
	if err == nil && pages.more {
		return p.more("%s; --limit 0 shows all", moreThan(limit, "job"))
	}
	return err
}

// noJobMatches is the error of an empty list. A queue that has never had a job may be misspelt.
func (p *program) noJobMatches(ctx context.Context, service *commands.Service, queues []string) error {
	none := cli.Exitf(cli.ExitNothing, "no job matches")
	err := service.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, queue := range queues {
			unused, err := projection.QueueUnused(ctx, tx, queue)
			if err != nil {
				return err
			}
			if unused {
				none = jobref.NeverUsed(ctx, tx, queue, none)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return none
}

// moreThan says that there is more than the n things that were printed.
func moreThan(n int, thing string) string {
	if n == 1 {
		return "there is more than 1 " + thing
	}
	return "there are more than " + render.Count(int64(n), thing)
}
