package main

import (
	"context"
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// showVerb shows all there is to know about one job now.
func showVerb(p *program) cli.Verb {
	return cli.Verb{
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
			var j shownJob
			then := p
			err := p.Read(c.Context, func(tx *ledger.Tx) error {
				m, past, err := p.MomentFlag(c, "as-of", tx)
				if err != nil {
					return err
				}
				if past {
					then = p.at(m)
					j, err = jobThen(c.Context, tx, c.Args().First(), m)
				} else {
					j, err = wholeJob(c.Context, tx, c.Args().First())
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case j.State == 0:
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", c.Args().First(), j.now)
			case !p.JSON:
				return then.printJob(j)
			}
			full := render.ToFullJSON(j.Job, false)
			if j.now == 0 {
				err = p.PrintJSON(full)
			} else {
				err = p.PrintJSON(struct {
					render.FullJobJSON
					render.StateNow
				}{full, render.StateNow{StateNow: j.now.String()}})
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
	}
}

// shownJob is a job with its events.
type shownJob struct {
	projection.Job
	events []ledger.Event
	now    ledger.State // with --as-of: what has become of it; else 0
}

func wholeJob(ctx context.Context, tx *ledger.Tx, text string) (j shownJob, err error) {
	if j.Job, err = cli.FindJob(ctx, tx, text); err != nil {
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

// jobThen is wholeJob at m; without a state where the job did not exist yet. What has been erased since is gone.
func jobThen(ctx context.Context, tx *ledger.Tx, text string, m projection.Moment) (j shownJob, err error) {
	now, err := cli.FindJob(ctx, tx, text)
	if err != nil {
		return j, err
	}
	if j.Job, j.events, err = projection.JobAsOf(ctx, tx, now.N, m); err != nil {
		return j, err
	}
	j.now, j.Erased = now.State, now.Erased
	if j.State == 0 {
		return j, nil
	}
	return j, projection.LoadBodies(ctx, tx, &j.Job)
}

func (p *program) printJob(j shownJob) error {
	events := j.events
	refused := 0
	for _, e := range events {
		if e.Kind() == ledger.KindRefused {
			refused++
		}
	}
	history := render.Count(int64(len(events)), "event")
	if refused > 0 {
		history += fmt.Sprintf(", %d of them refused", refused)
	}
	pairs := [][2]string{
		{"job", string(j.ID)}, {"state", j.State.String()}, {"state now", j.now.String()}, {"queue", j.Queue}, {"key", j.Key}, {"tags", tagText(j.Tags)},
		{"priority", fmt.Sprint(j.Priority)}, {"version", j.Version}, {"requires", strings.Join(j.Requires, ", ")},
		{"attempts", fmt.Sprintf("%d (failed: %d of %d allowed)", j.Attempt, j.Failures, j.MaxAttempts)},
	}
	add := func(name, value string) { pairs = append(pairs, [2]string{name, value}) }
	if j.MaxRuntime > 0 {
		add("max runtime", render.Duration(j.MaxRuntime))
	}
	now := p.Now()
	dated := func(name string, at ...ledger.Event) {
		for _, e := range at {
			add(name, fmt.Sprintf("%s (%s) by %s", render.Time(p.Local(e.At)), render.Age(e.At, now), e.Actor))
		}
	}
	if len(events) > 0 {
		dated("enqueued", events[0])
	}
	if j.State == ledger.Queued {
		add("run at", fmt.Sprintf("%s (%s)", render.Time(p.Local(j.RunAt)), render.Age(j.RunAt, now)))
	}
	if j.Worker.Name != "" {
		name := "last owner"
		if j.State.Held() {
			name = "owner"
		}
		add(name, fmt.Sprintf("%s (%s)", j.Worker.Name, render.Process(j.Worker)))
		add("claimed", fmt.Sprintf("%s (%s)", render.Time(p.Local(j.ClaimedAt)), render.Age(j.ClaimedAt, now)))
	}
	if j.State.Held() {
		add("last beat", fmt.Sprintf("%s (%s)", render.Time(p.Local(j.HeartbeatAt)), render.Age(j.HeartbeatAt, now)))
		left := "ends " + render.Age(j.LeaseUntil, now)
		if j.LeaseUntil.Before(now) {
			left = "ran out " + render.Age(j.LeaseUntil, now) + ", not swept yet"
		}
		add("lease", fmt.Sprintf("%s (%s)", render.Time(p.Local(j.LeaseUntil)), left))
	}
	if j.Progress != nil {
		add("progress", render.Percent(*j.Progress))
	}
	add("note", j.Note)
	if !j.FinishedAt.IsZero() {
		add("finished", fmt.Sprintf("%s (%s)", render.Time(p.Local(j.FinishedAt)), render.Age(j.FinishedAt, now)))
	}
	add("last error", j.ErrorCode)
	switch {
	case j.Erased:
		add("payload", "(erased)")
	default:
		add("payload", p.shortened(j.Payload))
		if j.Result != nil {
			add("result", p.shortened(j.Result))
		}
	}
	add("history", history)
	if err := p.PrintPairs(pairs...); err != nil || j.ErrorDetail == "" {
		return err
	}
	if _, err := p.Stdout.WriteString("error detail\n"); err != nil {
		return err
	}
	return p.printBlock(j.ErrorDetail)
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
	return render.Truncate(render.Escape(string(body[:min(len(body), 4*most)])), most) + fmt.Sprintf(" (%d bytes in all; --json has them)", len(body))
}

// printBlock prints text of several lines, on a terminal only its end: there stands what went wrong.
func (p *program) printBlock(text string) error {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if p.StdoutTerminal && len(lines) > most {
		lines = append([]string{fmt.Sprintf("… %d lines before; --json has them", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	for _, l := range lines {
		if _, err := p.Stdout.WriteString(strings.TrimRight("    | "+render.Escape(strings.TrimSuffix(l, "\r")), " ") + "\n"); err != nil {
			return err
		}
	}
	return nil
}
