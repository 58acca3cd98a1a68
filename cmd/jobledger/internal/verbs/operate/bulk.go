package operate

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/bulk"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// manyJobs is the number of jobs above which a bulk act must say why.
const manyJobs = 100

// bulkAct is an operator's verb on every job that a filter selects, in place of those that the line names.
type bulkAct struct {
	past   string // what was done to them, as in "12 jobs retried"
	may    func(event.State) bool
	skip   func(projection.Job) bool // nil: none
	choose func(projection.Job) commands.Command
	done   func(before, after projection.Job) // after the commit; nil: nothing
}

// What the verbs can be asked of.
func mayRetry(s event.State) bool      { return s == event.FailedState || s == event.CancelledState }
func mayCancel(s event.State) bool     { return !s.Final() }
func mayReschedule(s event.State) bool { return s == event.Queued }
func mayErase(s event.State) bool      { return s.Final() }

// statesFor names the states of which may is true.
func statesFor(may func(event.State) bool) (names []string) {
	for _, s := range event.States() {
		if may(s) {
			names = append(names, s.String())
		}
	}
	return names
}

const aboutBulk = "\nIn place of JOB, a filter selects jobs as in 'list': --state, --tag, --error, --exit, " +
	"--failure, --last-failure, --host, --from, --to or --find, within --queue if that is given; " +
	"the queue alone is not a filter. --dry-run says how many there are. " +
	"They are changed in chunks of one transaction each, the newest first, " +
	"with an event for each job; jobs that change meanwhile are left as they are. If it was cut off, the " +
	"same line goes on. Above 100 jobs --reason is required."

// Bulk adds to v, whose arguments are jobs, the flags that select many.
func bulkVerb(v cli.Verb, may func(event.State) bool) cli.Verb {
	v = jobverb.ByName(v)
	names := statesFor(may)
	filters := jobverb.FilterFlags(names)
	v.Flags = append(v.Flags, filters...)
	v.Flags = append(v.Flags, &cli.BoolFlag{Name: "dry-run",
		Usage:              "with a filter: change nothing, print how many jobs",
		DisableDefaultText: true})
	v.InPlace = append(v.InPlace[:len(v.InPlace):len(v.InPlace)], "dry-run")
	for _, f := range filters {
		v.InPlace = append(v.InPlace, f.Names()[0])
	}
	v.About += aboutBulk
	v.Complete = map[string][]string{"state": names, "by": find.Bys}
	v.Exits = append([]int{cli.ExitNothing}, v.Exits...)
	return v
}

// spreadFlag is for verbs that decide when jobs run.
func spreadFlag() cli.Flag {
	return cli.DurationFlag("spread", "with a filter: spread the jobs over `D`, each by a hash of its id", "", 0,
		commands.MaxRunTime, true)
}

// isBulk reports whether the line selects jobs by a filter.
func isBulk(c *cli.Context) bool {
	return slices.ContainsFunc(jobverb.FilterFlags(nil), func(f cli.Flag) bool { return c.IsSet(f.Names()[0]) })
}

// notBulk refuses flags of bulk acts on a line that names its jobs, and a queue that names none.
func notBulk(c *cli.Context, may func(event.State) bool) error {
	if c.String("queue") != "" && c.String("key") == "" && !c.Bool("last") {
		return cli.WithHint(cli.Usagef("--queue alone names no job: give --key KEY or --last, or a filter"),
			"by their state: --state %s -q %s", statesFor(may)[0], c.String("queue"))
	}
	for _, name := range []string{"dry-run", "spread"} {
		if c.IsSet(name) {
			return cli.WithHint(cli.Usagef("--%s is for a filter, and there is none", name),
				"a filter is --state, --tag, --error, --exit, --failure, --last-failure, --host, --from, --to or "+
					"--find")
		}
	}
	return nil
}

// bulk carries out act on the jobs that the line selects.
func (p *Verbs) bulk(c *cli.Context, act bulkAct) error {
	asked, err := jobverb.Asked(p.Program, c, find.JobFields)
	if err != nil {
		return err
	}
	if asked.Has("find") && !find.Narrow(asked) {
		return cli.Usagef("--find says no more than the queue, which alone is not a filter")
	}
	filter, err := p.bulkFilter(c, asked, act.may)
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	f, err := ledger.Read(c.Context, service.Store, func(tx *ledger.Tx) (projection.Filter, error) {
		return filter.Resolve(c.Context, tx)
	})
	if err != nil {
		return err
	}
	many := bulk.Act{Service: service, Actor: p.Actor, Filter: f, Skip: act.skip, Command: act.choose}
	selected, err := many.Count(c.Context)
	switch {
	case err != nil:
		return err
	case c.Bool("dry-run"):
		return p.printSelected(selected)
	case selected == 0:
		return cli.Exitf(cli.ExitNothing, "no job matches that can be %s", act.past)
	case selected > manyJobs && c.String("reason") == "":
		return cli.Usagef("--reason is required for more than %s: %d match", words.Count(manyJobs, "job"),
			selected)
	}
	tally, err := many.Run(c.Context, func(before, after projection.Job) error {
		if act.done != nil {
			act.done(before, after)
		}
		if p.JSON {
			return p.PrintJSON(words.ToJSON(after))
		}
		return nil
	})
	text := words.Count(int64(tally.Done), "job") + " " + act.past
	for _, rest := range []struct {
		n    int
		what string
	}{{tally.Already, "so already"}, {tally.Passed, "left as they are, since they changed meanwhile"},
		{tally.Failed, "failed"}} {
		if rest.n > 0 {
			text += fmt.Sprintf(", %d %s", rest.n, rest.what)
		}
	}
	p.Message("%s", text)
	switch {
	case err != nil:
		return cli.WithHint(err, "the same line goes on with the rest")
	case tally.Err != nil:
		return tally.Err
	}
	return nil
}

// printSelected prints what a dry run found.
func (p *Verbs) printSelected(n int) error {
	return p.JSONOrLine(struct {
		Jobs int `json:"jobs"`
	}{n}, words.Count(int64(n), "job"))
}

// bulkFilter reads which jobs the line asks for, within the states that may is true of.
func (p *Verbs) bulkFilter(c *cli.Context, asked url.Values, may func(event.State) bool) (f query.JobFilter,
	err error) {
	for _, name := range []string{"key", "last"} {
		if c.IsSet(name) {
			return f, cli.Usagef("--%s names one job, so it excludes a filter", name)
		}
	}
	if c.Args().Present() {
		return f, cli.Usagef("%q names one job, so it excludes a filter", c.Args().First())
	}
	names := statesFor(may)
	for _, word := range asked["state"] {
		if s, err := event.ParseState(word); err == nil && !may(s) {
			return f, cli.WithHint(cli.Usagef("--state: %s is not for jobs that are %s", c.Command.Name, s),
				"the states are %s", strings.Join(names, ", "))
		}
	}
	if !asked.Has("state") {
		asked["state"] = names
	}
	if asked.Get("queue") == "" {
		asked.Del("queue")
	}
	return find.Jobs(asked, p.Now())
}
