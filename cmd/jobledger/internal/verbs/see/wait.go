package see

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Wait lets a script go on when its jobs are done.
func (p *Verbs) Wait() cli.Verb {
	v := jobverb.ByName(cli.Verb{
		Name: "wait", Group: cli.GroupSee, Usage: "wait until jobs have ended",
		About: "It ends with 0 when every job has succeeded, and with 9 when all have ended but some failed or " +
			"were cancelled, and says which. A job that failed and will be tried again has not ended. With --json " +
			"each job is printed as it ends.\n" +
			"With --queue and nothing else it waits until no job of the queue is left that has not ended, also of " +
			"those that come meanwhile; 9 then means that some ended without success since it began to wait. " +
			"With --tag it waits for all jobs with the tag, of --queue if that is given, in the same way; 9 then " +
			"means that one of them did not succeed, whenever that was.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{cli.DurationFlag("timeout", "wait no longer than `D`, then end with 124", "", 0, 0,
			false), cli.ListFlag("tag", "in place of JOB: all jobs with this tag, as `K=V`; may be repeated")},
		Examples: []cli.Example{
			{"jobledger wait 01KDY9FY88 && echo done", "go on when the job has succeeded"},
			{"jobledger wait --timeout 10m $(cat ids)", "for several jobs, ten minutes at most"},
			{"jobledger wait -q mail && echo done", "until nothing of the queue is left to do"},
			{"jobledger wait --tag batch=7 && echo done", "until all jobs of the batch have succeeded"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob, cli.ExitNotSucceeded, cli.ExitTimedOut},
		Run: func(c *cli.Context) error {
			all, err := waitsForAll(c)
			if err != nil {
				return err
			}
			var refs []find.Ref
			if all == nil {
				if refs, err = jobverb.RefsOf(c); err != nil {
					return err
				}
			}
			ctx := c.Context
			if d, ok := cli.DurationValue(c, "timeout"); ok {
				limited, cancel := context.WithTimeout(ctx, d)
				defer cancel()
				ctx = limited
			}
			service, err := p.Open(c.Context)
			if err != nil {
				return err
			}
			defer service.Store.Close()
			if all != nil {
				return p.waitForAll(c.Context, ctx, service, *all)
			}
			var waiting []event.JobID
			var left []projection.Job // which have ended, and are archived
			for _, ref := range refs {
				j, err := ref.Read(c.Context, service)
				gone := errors.Is(err, commands.ErrNoJob)
				if gone && await.Comes(c.Context, service.Store, event.JobID(ref.ID)) {
					gone, err, j.ID = false, nil, event.JobID(strings.ToUpper(ref.ID))
				}
				if gone {
					j, err = archived.Job(c.Context, service, ref, err)
				}
				same := func(other projection.Job) bool { return other.ID == j.ID }
				switch {
				case err != nil:
					return err
				case gone && !slices.ContainsFunc(left, same):
					left = append(left, j)
				case !gone && !slices.Contains(waiting, j.ID):
					waiting = append(waiting, j.ID)
				}
			}
			return p.wait(ctx, service, waiting, left)
		},
	})
	v.InPlace = append(v.InPlace, "tag")
	return v
}

// wait waits for jobs, and counts those that have left.
func (p *Verbs) wait(ctx context.Context, service *commands.Service, waiting []event.JobID,
	left []projection.Job) error {
	total := len(waiting) + len(left)
	bar := p.StartProgress("waiting for "+words.Count(int64(total), "job"), int64(total))
	defer bar.Done()
	bar.Add(len(left))
	unsuccessful := withoutSuccess(left)
	if err := p.printEnded(left); err != nil {
		return err
	}
	outage := &await.Outage{Say: p.Message}
	open, err := await.Ends(ctx, service.Store, waiting, outage, func(ended []projection.Job) error {
		bar.Add(len(ended))
		unsuccessful = append(unsuccessful, withoutSuccess(ended)...)
		return p.printEnded(ended)
	})
	bar.Done()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut(open)
	case err != nil:
		return err
	}
	return notSucceeded(unsuccessful, total)
}

// notEnded has the states of a job that has not ended.
var notEnded = []event.State{event.Queued, event.ClaimedState, event.Running, event.Blocked}

// waitsForAll returns the filter of a line that names no jobs: those of a queue, or with tags; nil: it names
// jobs.
func waitsForAll(c *cli.Context) (*projection.Filter, error) {
	named := c.Args().Present() || c.IsSet("key") || c.Bool("last")
	switch {
	case named && c.IsSet("tag"):
		return nil, cli.Usagef("--tag stands for all of its jobs, so it excludes what names one")
	case named || !c.IsSet("tag") && !c.IsSet("queue"):
		return nil, nil
	}
	asked, err := find.Jobs(url.Values{"tag": c.StringSlice("tag")}, time.Time{})
	f := &projection.Filter{Tags: asked.Tags}
	if c.IsSet("queue") {
		f.Queues = []string{c.String("queue")}
	}
	return f, err
}

// waitForAll waits until no job is left that f selects and that has not ended. With a queue only the jobs
// count that ended since it began; with tags, which select fewer jobs, all count. It waits until limited
// ends.
func (p *Verbs) waitForAll(ctx, limited context.Context, service *commands.Service,
	f projection.Filter) error {
	unused, err := find.UnusedQueues(ctx, service.Store, f.Queues)
	if err != nil {
		return err
	}
	for _, text := range unused { // a misspelt one has nothing left to do
		return cli.Exitf(cli.ExitNothing, "%s", text)
	}
	jobs := func() (found []projection.Job, err error) {
		return ledger.Read(ctx, service.Store, func(tx *ledger.Tx) ([]projection.Job, error) {
			return projection.List(ctx, tx, f)
		})
	}
	what := "jobs with the tag"
	if len(f.Tags) == 0 {
		f.FinishedFrom, what = p.Now(), "jobs of the queue "+f.Queues[0]
	} else if found, err := jobs(); err != nil || len(found) == 0 {
		return cmp.Or(err, cli.Exitf(cli.ExitNothing, "no job has the tag"))
	}
	left := projection.Filter{Queues: f.Queues, Tags: f.Tags, States: notEnded}
	err = await.None(limited, service.Store, left, &await.Outage{Say: p.Message})
	if errors.Is(err, context.DeadlineExceeded) {
		return cli.Exitf(cli.ExitTimedOut, "timed out: %s have not ended; 'jobledger status' counts them", what)
	}
	if err != nil {
		return err
	}
	ended, err := jobs()
	if err != nil {
		return err
	}
	slices.Reverse(ended) // the oldest first
	if err := p.printEnded(ended); err != nil {
		return err
	}
	return notSucceeded(withoutSuccess(ended), len(ended))
}

// withoutSuccess lists the jobs that ended without success, each with its state.
func withoutSuccess(ended []projection.Job) (found []string) {
	for _, j := range ended {
		if j.State != event.SucceededState {
			found = append(found, fmt.Sprintf("%s is %s", j.ID, j.State))
		}
	}
	return found
}

// printEnded prints jobs as JSON, at once, so that a reader sees each as it ends. For people it prints
// nothing.
func (p *Verbs) printEnded(ended []projection.Job) error {
	if p.JSON {
		if err := cli.PrintJSONOf(p.Program, ended, words.ToJSON); err != nil {
			return err
		}
	}
	return p.Flush()
}

func timedOut(waiting []event.JobID) error {
	if len(waiting) == 1 {
		return cli.Exitf(cli.ExitTimedOut, "timed out: job %s has not ended", waiting[0])
	}
	return cli.Exitf(cli.ExitTimedOut, "timed out: %s have not ended, the first of them is %s",
		words.Count(int64(len(waiting)), "job"), waiting[0])
}

func notSucceeded(unsuccessful []string, total int) error {
	switch n := len(unsuccessful); {
	case n == 0:
		return nil
	case total == 1:
		return cli.Exitf(cli.ExitNotSucceeded, "job %s", unsuccessful[0])
	default:
		return cli.Exitf(cli.ExitNotSucceeded, "%d of %s did not succeed: %s", n,
			words.Count(int64(total), "job"), strings.Join(unsuccessful, ", "))
	}
}
