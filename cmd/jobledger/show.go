package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
	"jobledger/projection"
)

// showVerb shows all there is to know about one job now.
func showVerb(p *program) verb {
	return verb{
		name: "show", group: groupSee, usage: "show a job with its payload and result",
		about: "With --json the job is the first line, and its events follow, one a line.",
		args:  "JOB", minArgs: 1, maxArgs: 1,
		examples: []example{
			{"jobledger show 01KDY9FY88", "the job whose id begins with these letters"},
			{"jobledger show 01KDY9FY88 --json | head -1 | jq -r .payload", "its payload"},
		},
		exits: []int{exitNoJob},
		run: func(c *cli.Context) error {
			var j projection.Job
			var events []ledger.Event
			err := p.read(c.Context, func(tx *ledger.Tx) (err error) {
				j, events, err = wholeJob(c.Context, tx, c.Args().First())
				return err
			})
			if err != nil {
				return err
			}
			if !p.json {
				return p.printJob(j, events)
			}
			if err := p.printJSON(toFullJSON(j, false)); err != nil {
				return err
			}
			for _, e := range events {
				if err := p.printJSON(e); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func wholeJob(ctx context.Context, tx *ledger.Tx, text string) (j projection.Job, events []ledger.Event, err error) {
	if j, err = jobNamed(ctx, tx, text); err != nil {
		return j, nil, err
	}
	if err = projection.LoadBodies(ctx, tx, &j); err != nil {
		return j, nil, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N}) {
		if err != nil {
			return j, nil, err
		}
		events = append(events, e)
	}
	return j, events, nil
}

func (p *program) printJob(j projection.Job, events []ledger.Event) error {
	refused := 0
	for _, e := range events {
		if e.Kind() == ledger.KindRefused {
			refused++
		}
	}
	history := count(int64(len(events)), "event")
	if refused > 0 {
		history += fmt.Sprintf(", %d of them refused", refused)
	}
	pairs := [][2]string{
		{"job", string(j.ID)}, {"state", j.State.String()}, {"queue", j.Queue}, {"key", j.Key}, {"tags", tagText(j.Tags)},
		{"priority", fmt.Sprint(j.Priority)}, {"version", j.Version}, {"requires", strings.Join(j.Requires, ", ")},
		{"attempts", fmt.Sprintf("%d (failed: %d of %d allowed)", j.Attempt, j.Failures, j.MaxAttempts)},
	}
	add := func(name, value string) { pairs = append(pairs, [2]string{name, value}) }
	if j.MaxRuntime > 0 {
		add("max runtime", formatDuration(j.MaxRuntime))
	}
	now := p.now()
	dated := func(name string, at ...ledger.Event) {
		for _, e := range at {
			add(name, fmt.Sprintf("%s (%s) by %s", formatTime(p.local(e.At)), age(e.At, now), e.Actor))
		}
	}
	if len(events) > 0 {
		dated("enqueued", events[0])
	}
	if j.State == ledger.Queued {
		add("run at", fmt.Sprintf("%s (%s)", formatTime(p.local(j.RunAt)), age(j.RunAt, now)))
	}
	if j.Worker.Name != "" {
		name := "last owner"
		if j.State.Held() {
			name = "owner"
		}
		add(name, fmt.Sprintf("%s (%s)", j.Worker.Name, process(j.Worker)))
		add("claimed", fmt.Sprintf("%s (%s)", formatTime(p.local(j.ClaimedAt)), age(j.ClaimedAt, now)))
	}
	if j.State.Held() {
		add("last beat", fmt.Sprintf("%s (%s)", formatTime(p.local(j.HeartbeatAt)), age(j.HeartbeatAt, now)))
		left := "ends " + age(j.LeaseUntil, now)
		if j.LeaseUntil.Before(now) {
			left = "ran out " + age(j.LeaseUntil, now) + ", not swept yet"
		}
		add("lease", fmt.Sprintf("%s (%s)", formatTime(p.local(j.LeaseUntil)), left))
	}
	if j.Progress != nil {
		add("progress", percent(*j.Progress))
	}
	add("note", j.Note)
	if !j.FinishedAt.IsZero() {
		add("finished", fmt.Sprintf("%s (%s)", formatTime(p.local(j.FinishedAt)), age(j.FinishedAt, now)))
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
	if err := p.printPairs(pairs...); err != nil || j.ErrorDetail == "" {
		return err
	}
	if _, err := p.stdout.WriteString("error detail\n"); err != nil {
		return err
	}
	return p.printBlock(j.ErrorDetail)
}

func tagText(tags map[string]string) string {
	var parts []string
	for _, name := range sortedNames(tags) {
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
	if !p.stdoutTerminal || len(body) <= most {
		return string(body)
	}
	return truncate(escape(string(body[:min(len(body), 4*most)])), most) + fmt.Sprintf(" (%d bytes in all; --json has them)", len(body))
}

// printBlock prints text of several lines, on a terminal only its end: there stands what went wrong.
func (p *program) printBlock(text string) error {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if p.stdoutTerminal && len(lines) > most {
		lines = append([]string{fmt.Sprintf("… %d lines before; --json has them", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	for _, l := range lines {
		if _, err := p.stdout.WriteString(strings.TrimRight("    | "+escape(strings.TrimSuffix(l, "\r")), " ") + "\n"); err != nil {
			return err
		}
	}
	return nil
}
