package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
	"jobledger/projection"
)

// listVerb finds jobs.
func listVerb(p *program) verb {
	return verb{
		name: "list", group: groupSee, usage: "list jobs, the newest first",
		about: "Jobs of all states, without payload and result; 'show' has these. TRIED is how many attempts failed, of " +
			"how many allowed. --state, --queue and --tag may be repeated: any of the states and queues, all of the tags.",
		flags: []cli.Flag{
			listFlag("state", "only `STATE`: "+strings.Join(stateNames(), ", ")),
			listFlag("queue", "only of this `QUEUE`", "q"),
			listFlag("tag", "only with this tag, as `K=V`"),
			&cli.StringFlag{Name: "key", Usage: "only with this `KEY`"},
			wholeFlag("limit", "at most `N` jobs, 0 for all", 50, 0, math.MaxInt, ""),
		},
		examples: []example{
			{"jobledger list --state failed -q mail", "the last 50 jobs of the queue mail that failed for good"},
			{"jobledger list --tag customer=17 --limit 0", "every job with this tag"},
			{"jobledger list --key invoice-4711 --json", "the job with this key, for a script"},
		},
		exits: []int{exitNothing},
		complete: func(flag string) []string {
			if flag == "state" {
				return stateNames()
			}
			return nil
		},
		run: func(c *cli.Context) error {
			f, err := listFilter(c)
			if err != nil {
				return err
			}
			return p.list(c, f, c.Int("limit"))
		},
	}
}

func stateNames() (names []string) {
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	return names
}

func listFilter(c *cli.Context) (projection.Filter, error) {
	f := projection.Filter{Queues: c.StringSlice("queue"), Key: c.String("key")}
	for _, word := range c.StringSlice("state") {
		s, err := ledger.ParseState(word)
		if err != nil {
			return f, withHint(usagef("--state: there is no state %q", word), "the states are %s", strings.Join(stateNames(), ", "))
		}
		f.States = append(f.States, s)
	}
	for _, tag := range c.StringSlice("tag") {
		name, value, ok := strings.Cut(tag, "=")
		if !ok || name == "" {
			return f, usagef("--tag: %q is not K=V", tag)
		}
		if old, twice := f.Tags[name]; twice && old != value {
			return f, usagef("--tag: no job has both %s=%s and %s=%s", name, old, name, value)
		}
		if f.Tags == nil {
			f.Tags = make(map[string]string)
		}
		f.Tags[name] = value
	}
	return f, nil
}

// listPage is how many jobs one snapshot gives: a reader that is slow to take a long list, such as a pager, must
// not hold a snapshot open.
const listPage = 1000

// list prints up to limit jobs, 0 for all.
func (p *program) list(c *cli.Context, f projection.Filter, limit int) error {
	service, err := p.open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	t := &table{columns: []column{{title: "JOB"}, {title: "STATE", state: true}, {title: "QUEUE", least: 8}, {title: "TRIED"},
		{title: "WHEN"}, {title: "WORKER", least: 8}, {title: "KEY", least: 8}, {title: "ERROR", least: 8}}}
	printed, more := 0, false
	for {
		f.Limit = listPage
		if left := limit - printed; limit > 0 && left < listPage {
			f.Limit = left + 1 // one more, to know of it
		}
		var page []projection.Job
		err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
			page, err = projection.List(c.Context, tx, f)
			return err
		})
		if err != nil {
			return err
		}
		last := len(page) < f.Limit
		if limit > 0 && printed+len(page) > limit {
			page, last, more = page[:limit-printed], true, true
		}
		for _, j := range page {
			if !p.json {
				t.add(string(j.ID), j.State.String(), j.Queue, fmt.Sprintf("%d/%d", j.Failures, j.MaxAttempts), p.sinceWhen(j),
					j.Worker.Name, j.Key, j.ErrorCode)
			} else if err := p.printJSON(toJSON(j)); err != nil {
				return err
			}
		}
		if printed += len(page); last {
			break
		}
		f.Before = page[len(page)-1].N
	}
	switch {
	case printed == 0:
		return exitf(exitNothing, "no job matches")
	case !p.json:
		err = p.printTable(t)
	}
	if err == nil && more {
		return p.more("there are more than %s; --limit 0 shows all", count(int64(limit), "job"))
	}
	return err
}

// sinceWhen is the time that matters most for a job in its state.
func (p *program) sinceWhen(j projection.Job) string {
	now := p.now()
	switch {
	case j.State == ledger.Queued && j.RunAt.After(now):
		return age(j.RunAt, now)
	case j.State == ledger.Queued:
		return "ready " + roughly(now.Sub(j.RunAt))
	case j.State.Held() && j.LeaseUntil.Before(now):
		return "expired " + age(j.LeaseUntil, now)
	case j.State.Held():
		return "for " + roughly(now.Sub(j.ClaimedAt))
	}
	return age(j.FinishedAt, now)
}
