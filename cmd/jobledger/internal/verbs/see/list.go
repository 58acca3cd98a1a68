package see

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// List finds jobs.
func (p *Verbs) List() cli.Verb {
	return archived.With(p.Program, cli.Verb{
		Name: "list", Group: cli.GroupSee, Usage: "list jobs, the newest first",
		About: "On a terminal NO is the number of a job, which every command takes for a JOB, and WHAT is its " +
			"tag title, else its key, else the beginning of its payload; --wide shows the ids. A pipe gets the ids, " +
			"and no payload.\n" +
			"Jobs of all states, without payload and result; 'show' has these. FAILS is how many attempts " +
			"failed, of how many allowed. --state, --queue and --tag may be repeated: any of the states and " +
			"queues, all of the tags. WHEN is the time that matters in that state: its distance from now up to " +
			"48 hours, beyond that the date. ERROR is the code of the last failure, and 'exit N' where a " +
			"command exited. --from and --to include the moment that they name, which may be pos:N; --host, " +
			"--error and --exit are about the last claim and the last failure. --failure and --last-failure take " +
			"the fingerprint of a failure, as 'report failures --cause' prints it; --from and --to are then about " +
			"that failure.\n" +
			"A term of --find is a word, which is the beginning of an id or part of queue, key, group, error " +
			"code, error text or a tag, or a tag as K=V; or a key and its value, of " +
			strings.Join(find.FindKeys, ", ") + ". A term after a - must not hold. worker is any owner, " +
			"owner and host are about the last one, exit and text about the last failure, code about any failure, " +
			"kind, actor, by and pos about any event of the job, since and until about when it was enqueued, " +
			"ended:FROM..TO about when it ended. Several of one key mean any of them, but for words, tag, text, " +
			"worker, kind, actor, by, code and payload: all of these." + cli.AboutAsOf,
		Renamed: map[string]string{"last": "limit"},
		Flags: append(listFlags(),
			cli.WholeFlag("limit", "at most `N` jobs, 0 for all", 50, 0, math.MaxInt, "", "n"),
			cli.DurationFlag("search-time", "look for `D` at most, about; then say how far, and end with 124", "",
				0, 0, false),
			cli.AsOfFlag(),
			cli.WideFlag(),
		),
		Examples: []cli.Example{
			{"jobledger list --state failed -q mail", "the last 50 jobs of the queue mail that failed for good"},
			{"jobledger list --state failed --by finished --from 02:00 --to 04:00",
				"what failed for good between two and four"},
			{"jobledger list --exit 7 --host alpha --from -1d",
				"what was enqueued since yesterday, and last failed with exit code 7 on this host"},
			{"jobledger list --failure f1-3c1a2b4d5e6f --from 02:00",
				"what met this failure since two, and what has become of it"},
			{"jobledger list --find 'smtp worker:alpha -queue:mail since:-2h'",
				"what has smtp in its queue, key, error code or tags, and more conditions"},
			{"jobledger list --tag customer=17 --limit 0", "every job with this tag"},
			{"jobledger list --key invoice-4711 --json", "the job with this key, for a script"},
			{"jobledger list --as-of 14:30 --state running",
				"what was running at half past two, and what became of it"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitTimedOut},
		Complete: map[string][]string{"state": find.StateNames(),
			"by": find.Bys},
		Run: func(c *cli.Context) error {
			return p.list(c, c.Int("limit"))
		},
	})
}

func (p *Verbs) list(c *cli.Context, limit int) error {
	asked, err := jobverb.Asked(p.Program, c, find.JobFields)
	if err != nil {
		return err
	}
	if c.IsSet("search-time") && asked.Get("by") == find.ByFinished {
		return cli.Usagef("--search-time and --by finished cannot be combined: no --to would go on")
	}
	selected, err := find.Jobs(asked, p.Now())
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	var q query.Jobs
	then := p.Program
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		m, past, err := p.MomentFlag(c, "as-of", tx)
		switch {
		case err != nil:
			return err
		case past:
			q.At, then = &m, p.At(m)
		default:
			if then, err = p.AtCopy(c, tx); err != nil {
				return err
			}
		}
		q.Filter, err = selected.Resolve(c.Context, tx)
		return err
	})
	if err != nil {
		return err
	}
	keys, ids := find.Named(asked)
	err = find.Left(c.Context, service.Store, archived.Folder(c, service.Store), q, keys, ids)
	if err != nil {
		return err
	}
	absent, err := ledger.Read(c.Context, service.Store, func(tx *ledger.Tx) (projection.Absent, error) {
		return projection.AbsentFrom(c.Context, tx, q.Filter)
	})
	if err != nil {
		return err
	}
	err = p.listFound(c, service, q, limit, then)
	if errors.Is(err, projection.ErrArchived) { // it is listed from the archive
		return err
	}
	return cmp.Or(err, archived.Note(p.Program, absent, "are not listed"))
}

// listFound prints the jobs that q asks for.
func (p *Verbs) listFound(c *cli.Context, service *commands.Service, q query.Jobs, limit int,
	then *cli.Program) error {
	past := q.At != nil
	numbered := p.StdoutTerminal && !p.JSON && !c.Bool("wide")
	t := print.Jobs(past)
	if numbered {
		t = print.Numbered(past)
	}
	r := find.Reader{Store: service.Store, Limit: limit}
	r.SearchTime, _ = cli.DurationValue(c, "search-time")
	for j, err := range r.Jobs(c.Context, q) {
		if err == nil && p.JSON {
			err = p.PrintJSON(print.JobJSON(j.Then, j.Exit, past))
		}
		if err != nil {
			return err
		}
		switch {
		case numbered:
			what := ""
			err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
				what, err = state.What(c.Context, tx, j.Then.Job)
				return err
			})
			if err != nil {
				return err
			}
			print.AddNumbered(t, j.Then, j.Exit, what, past, then.Now())
		case !p.JSON:
			print.AddJob(t, j.Then, j.Exit, past, then.Now())
		}
	}
	var ended error
	if r.Ended != nil {
		on := "--to pos:%d goes on"
		if q.Filter.Failure != "" || q.Filter.LastFailure != "" { // --to may be about the failure
			on = "--find until:pos:%d goes on"
		}
		ended = cli.WithHint(cli.Exitf(cli.ExitTimedOut, "%w: searched %s", r.Ended,
			words.Newest(r.Ended.Looked, r.Ended.Jobs)), on, r.Ended.Reached)
	}
	if r.Taken == 0 && ended != nil {
		return ended
	}
	if r.Taken == 0 {
		unused, err := find.UnusedQueues(c.Context, service.Store, q.Filter.Queues)
		if err != nil {
			return err
		}
		none := cli.Exitf(cli.ExitNothing, "no job matches")
		for _, queue := range unused {
			none = cli.WithHint(none, "%s", queue)
		}
		return none
	}
	if past && !p.JSON {
		p.Message("%s", p.Moment(*q.At))
	}
	var err error
	if !p.JSON {
		err = p.PrintTable(t.Widened(c.Bool("wide")))
	}
	if err == nil && r.More {
		return p.MessageAfter("%s; --limit 0 shows all", words.MoreThan(limit, "job"))
	}
	return cmp.Or(err, ended)
}

// listFlags are the flags that select jobs.
func listFlags() []cli.Flag {
	flags := jobverb.FilterFlags(find.StateNames())
	flags = slices.Insert(flags, 1, cli.Flag(cli.ListFlag("queue", "only of this `QUEUE`", "q")))
	return slices.Insert(flags, 3, cli.Flag(&cli.StringFlag{Name: "key", Usage: "only with this `KEY`"}))
}
