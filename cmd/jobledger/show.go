package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// showVerb shows all there is to know about one job now.
func showVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "show", Group: cli.GroupSee, Usage: "show a job with its payload and result",
		About: "With --json the job is the first line, and its events follow, one a line." + cli.AboutAsOf,
		Args:  "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{cli.AsOfFlag()},
		Examples: []cli.Example{
			{"jobledger show 01KDY9FY88", "the job whose id begins with these letters"},
			{"jobledger show 01KDY9FY88 --json | head -1 | jq -r .payload", "its payload"},
			{"jobledger show 01KDY9FY88 --as-of 14:30", "as it was at half past two"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobref.OneFromLine(c)
			if err != nil {
				return err
			}
			var j shownJob
			then := p
			err = p.Read(c.Context, func(tx *ledger.Tx) error {
				m, past, err := p.MomentFlag(c, "as-of", tx)
				if err != nil {
					return err
				}
				if past {
					then = p.at(m)
					j, err = jobThen(c.Context, tx, ref.AsOf(m), m)
					return err
				}
				stopped, err := p.AtCopy(c, tx)
				if err == nil {
					then = &program{stopped}
					j, err = wholeJob(c.Context, tx, ref)
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case j.State == 0:
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", j.ID, j.now)
			case !p.JSON:
				return then.printJob(j)
			}
			full := render.ToFullJSON(j.Job, false)
			if j.now == 0 {
				err = p.PrintJSON(struct {
					render.FullJobJSON
					render.ExitJSON
				}{full, render.ToExitJSON(j.exit())})
			} else {
				err = p.PrintJSON(struct {
					render.FullJobJSON
					render.ExitJSON
					render.StateNow
				}{full, render.ToExitJSON(j.exit()), render.StateNow{StateNow: j.now.String()}})
			}
			if err != nil {
				return err
			}
			for _, e := range j.events {
				if err := p.PrintJSON(e); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// shownJob is a job with its events.
type shownJob struct {
	projection.Job
	events []event.Event
	now    event.State // with --as-of: what has become of it; else 0
}

// exit returns how the command of the last failure ended.
func (j shownJob) exit() (exit projection.Exit) {
	if j.ErrorCode == "" { // it has succeeded, or was retried, since
		return exit
	}
	for _, e := range j.events {
		switch b := e.Body.(type) {
		case *event.Failed:
			exit = projection.Exit{Code: b.ExitCode, Signal: b.Signal}
		case *event.Reclaimed:
			exit = projection.Exit{}
		}
	}
	return exit
}

func wholeJob(ctx context.Context, tx *ledger.Tx, ref jobref.Ref) (j shownJob, err error) {
	if j.Job, err = ref.Find(ctx, tx); err != nil {
		return j, err
	}
	if err = projection.LoadBodies(ctx, tx, &j.Job); err != nil {
		return j, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N}) {
		if err != nil {
			return j, err
		}
		j.events = append(j.events, e)
	}
	return j, nil
}

// jobThen is wholeJob at m; without a state where the job did not exist yet. What has been erased since is
// gone.
func jobThen(ctx context.Context, tx *ledger.Tx, ref jobref.Ref, m projection.Moment) (j shownJob,
	err error) {
	now, err := ref.Find(ctx, tx)
	if err != nil {
		return j, err
	}
	if j.Job, j.events, err = projection.JobAsOf(ctx, tx, now.N, m); err != nil {
		return j, err
	}
	j.now, j.Erased = now.State, now.Erased
	if j.State == 0 {
		j.ID = now.ID
		return j, nil
	}
	return j, projection.LoadBodies(ctx, tx, &j.Job)
}

func (p *program) printJob(j shownJob) error {
	pairs := jobPairs{program: p}
	pairs.identity(j)
	pairs.times(j)
	pairs.outcome(j)
	if err := p.PrintPairs(pairs.all...); err != nil || j.ErrorDetail == "" {
		return err
	}
	if _, err := p.Stdout.WriteString("error detail\n"); err != nil {
		return err
	}
	return p.printBlock(j.ErrorDetail)
}

// jobPairs are the names and values that show prints of a job.
type jobPairs struct {
	*program
	all [][2]string
}

func (b *jobPairs) add(name, value string) { b.all = append(b.all, [2]string{name, value}) }

// at adds a moment with its distance from now.
func (b *jobPairs) at(name string, t time.Time) {
	b.add(name, fmt.Sprintf("%s (%s)", render.Time(b.Local(t)), render.Age(t, b.Now())))
}

func (b *jobPairs) identity(j shownJob) {
	b.add("job", string(j.ID))
	b.add("state", j.State.String())
	b.add("state now", j.now.String())
	b.add("queue", j.Queue)
	b.add("key", j.Key)
	b.add("tags", tagText(j.Tags))
	b.add("priority", fmt.Sprint(j.Priority))
	b.add("version", j.Version)
	b.add("requires", strings.Join(j.Requires, ", "))
	b.add("attempts", fmt.Sprintf("%d (failed: %d of %d allowed)", j.Attempt, j.Failures, j.MaxAttempts))
	if j.MaxRuntime > 0 {
		b.add("max runtime", render.Duration(j.MaxRuntime))
	}
}

func (b *jobPairs) times(j shownJob) {
	now := b.Now()
	if len(j.events) > 0 {
		e := j.events[0]
		b.add("enqueued", fmt.Sprintf("%s (%s) by %s", render.Time(b.Local(e.At)), render.Age(e.At, now), e.Actor))
	}
	if j.State == event.Queued {
		b.at("run at", j.RunAt)
	}
	if j.Worker.Name != "" {
		name := "last owner"
		if j.State.Held() {
			name = "owner"
		}
		b.add(name, fmt.Sprintf("%s (%s)", j.Worker.Name, render.Process(j.Worker)))
		b.at("claimed", j.ClaimedAt)
	}
	if j.State.Held() {
		b.at("last beat", j.HeartbeatAt)
		left := "ends " + render.Age(j.LeaseUntil, now)
		if j.LeaseUntil.Before(now) {
			left = "ran out " + render.Age(j.LeaseUntil, now) + ", not swept yet"
		}
		b.add("lease", fmt.Sprintf("%s (%s)", render.Time(b.Local(j.LeaseUntil)), left))
	}
}

func (b *jobPairs) outcome(j shownJob) {
	if j.Progress != nil {
		b.add("progress", render.Percent(*j.Progress))
	}
	b.add("note", j.Note)
	if !j.FinishedAt.IsZero() {
		b.at("finished", j.FinishedAt)
	}
	b.add("last error", render.FailureText(j.ErrorCode, j.exit()))
	if j.Erased {
		b.add("payload", "(erased)")
	} else {
		b.add("payload", b.shortened(j.Payload))
		if j.Result != nil {
			b.add("result", b.shortened(j.Result))
		}
	}
	refused := 0
	for _, e := range j.events {
		if e.Kind() == event.KindRefused {
			refused++
		}
	}
	history := render.Count(int64(len(j.events)), "event")
	if refused > 0 {
		history += fmt.Sprintf(", %d of them refused", refused)
	}
	b.add("history", history)
}

func tagText(tags map[string]string) string {
	var parts []string
	for _, name := range render.SortedNames(tags) {
		parts = append(parts, name+"="+tags[name])
	}
	return strings.Join(parts, ", ")
}

// shortened is a payload in one line: whole when piped, on a terminal as much as a person reads.
func (p *program) shortened(body []byte) string {
	const most = 1000 // columns
	if len(body) == 0 {
		return "(0 bytes)"
	}
	if !p.StdoutTerminal || len(body) <= most {
		return string(body)
	}
	return render.Truncate(render.Escape(string(body[:min(len(body), 4*most)])), most) +
		fmt.Sprintf(" (%d bytes in all; --json has them)", len(body))
}

// printBlock prints text of several lines, on a terminal only its end, where the error usually is.
func (p *program) printBlock(text string) error {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if p.StdoutTerminal && len(lines) > most {
		lines = append([]string{fmt.Sprintf("… %s before; --json has all", render.Count(int64(len(lines)-most),
			"line"))},
			lines[len(lines)-most:]...)
	}
	for _, l := range lines {
		if _, err := p.Stdout.WriteString(strings.TrimRight("    | "+render.Escape(strings.TrimSuffix(l, "\r")),
			" ") + "\n"); err != nil {
			return err
		}
	}
	return nil
}
