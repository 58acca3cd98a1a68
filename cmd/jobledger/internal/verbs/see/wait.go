package see

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Wait lets a script go on when its jobs are done.
func (p *Verbs) Wait() cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "wait", Group: cli.GroupSee, Usage: "wait until jobs have ended",
		About: "It ends with 0 when every job has succeeded, and with 9 when all have ended but some failed or " +
			"were cancelled, and says which. A job that failed and will be tried again has not ended. With --json " +
			"each job is printed as it ends.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{cli.DurationFlag("timeout", "wait no longer than `D`, then end with 124", "", 0, 0,
			false)},
		Examples: []cli.Example{
			{"jobledger wait 01KDY9FY88 && echo done", "go on when the job has succeeded"},
			{"jobledger wait --timeout 10m $(cat ids)", "for several jobs, ten minutes at most"},
		},
		Exits: []int{cli.ExitNoJob, cli.ExitNotSucceeded, cli.ExitTimedOut},
		Run: func(c *cli.Context) error {
			refs, err := jobref.FromLine(c)
			if err != nil {
				return err
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
			var waiting []event.JobID
			for _, ref := range refs {
				j, err := ref.Read(c.Context, service)
				if err != nil {
					return err
				}
				if !slices.Contains(waiting, j.ID) {
					waiting = append(waiting, j.ID)
				}
			}
			return p.wait(ctx, service, waiting)
		},
	})
}

func (p *Verbs) wait(ctx context.Context, service *commands.Service, waiting []event.JobID) error {
	bar := p.StartProgress("waiting for "+render.Count(int64(len(waiting)), "job"), int64(len(waiting)))
	defer bar.Done()
	var unsuccessful []string
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
	return notSucceeded(unsuccessful, len(waiting))
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
		for _, j := range ended {
			if err := p.PrintJSON(render.ToJSON(j)); err != nil {
				return err
			}
		}
	}
	return p.Flush()
}

func timedOut(waiting []event.JobID) error {
	if len(waiting) == 1 {
		return cli.Exitf(cli.ExitTimedOut, "timed out: job %s has not ended", waiting[0])
	}
	return cli.Exitf(cli.ExitTimedOut, "timed out: %s have not ended, the first of them is %s",
		render.Count(int64(len(waiting)), "job"), waiting[0])
}

func notSucceeded(unsuccessful []string, total int) error {
	switch n := len(unsuccessful); {
	case n == 0:
		return nil
	case total == 1:
		return cli.Exitf(cli.ExitNotSucceeded, "job %s", unsuccessful[0])
	default:
		return cli.Exitf(cli.ExitNotSucceeded, "%d of %s did not succeed: %s", n,
			render.Count(int64(total), "job"), strings.Join(unsuccessful, ", "))
	}
}
