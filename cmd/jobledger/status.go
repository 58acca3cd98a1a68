package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// statusVerb is the first thing to look at when something is wrong.
func statusVerb(p *program) verb {
	return verb{
		name: "status", group: groupSee, usage: "show how things stand in every queue",
		about: "READY jobs could be claimed now, and OLDEST is how long the first of them has been waiting; " +
			"LATER are those whose time has not come. Below the table stands what may need somebody: paused queues, " +
			"leases that ran out and were not swept, jobs that are being retried." + aboutAsOf + "\n" +
			"--watch goes on until interrupted, every D (2s by default): on a terminal over the last picture, else below it.",
		args: "[D]", maxArgs: 1,
		flags: []cli.Flag{asOfFlag(), &cli.BoolFlag{Name: "watch", Usage: "show it again every D"}},
		examples: []example{
			{"jobledger status", "a line for each queue, and what may need attention"},
			{"jobledger status --watch 5s", "again every five seconds, until interrupted"},
			{"jobledger status --json", "an object for each queue"},
			{"jobledger status --as-of 14:30", "how things stood at half past two, and how many jobs there are now"},
		},
		run: func(c *cli.Context) error {
			switch {
			case c.Bool("watch") && c.IsSet("as-of"):
				return usagef("--watch and --as-of exclude each other")
			case c.Bool("watch"):
				return p.watch(c, c.Args().First(), (*program).status)
			case c.Args().Present():
				return withHint(usagef("unexpected argument %q", c.Args().First()), "%s", seeHelp("status"))
			}
			return p.status(c)
		},
	}
}

func (p *program) status(c *cli.Context) error {
	var queues []projection.QueueStatus
	var last ledger.Event
	err := p.read(c.Context, func(tx *ledger.Tx) error {
		m, past, err := p.momentOf(c, "as-of", tx)
		if err != nil {
			return err
		}
		if past {
			return p.statusThen(c.Context, tx, m)
		}
		if last, err = lastEvent(c.Context, tx, 0); err != nil {
			return err
		}
		queues, err = projection.Status(c.Context, tx, p.now())
		return err
	})
	switch {
	case err != nil || c.IsSet("as-of"):
		return err
	case !p.json:
		return p.printStatus(queues, last)
	}
	for _, q := range queues {
		if err := p.printJSON(p.statusJSON(q)); err != nil {
			return err
		}
	}
	return nil
}

// lastEvent is the last event up to the place until, 0 for the end.
func lastEvent(ctx context.Context, tx *ledger.Tx, until int64) (last ledger.Event, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Until: until, Limit: 1, Last: true}) {
		return e, err
	}
	return last, nil
}

func (p *program) printStatus(queues []projection.QueueStatus, last ledger.Event) error {
	if len(queues) == 0 {
		p.message("no jobs yet")
		return nil
	}
	t := &table{columns: []column{{title: "QUEUE", least: 8}, {title: "READY", right: true}, {title: "OLDEST", right: true},
		{title: "LATER", right: true}, {title: "CLAIMED", right: true}, {title: "RUNNING", right: true},
		{title: "SUCCEEDED", right: true}, {title: "FAILED", right: true}, {title: "CANCELLED", right: true}}}
	total := projection.QueueStatus{Queue: projection.Queue{Name: "total"}, Jobs: make(map[ledger.State]int64)}
	row := func(q projection.QueueStatus) {
		cells := []string{q.Name, fmt.Sprint(q.Ready), p.waited(q.OldestReady), fmt.Sprint(q.Scheduled)}
		for _, s := range ledger.States()[1:] {
			cells = append(cells, fmt.Sprint(q.Jobs[s]))
		}
		t.add(cells...)
	}
	for _, q := range queues {
		row(q)
		addTo(&total, q)
	}
	if len(queues) > 1 {
		row(total)
	}
	if err := p.printTable(t); err != nil {
		return err
	}
	if _, err := p.stdout.WriteString("\n"); err != nil {
		return err
	}
	for _, q := range queues {
		if err := p.printConcerns(q); err != nil {
			return err
		}
	}
	if err := p.printLine("last hour: " + activityText(total.LastHour)); err != nil {
		return err
	}
	return p.printLine(fmt.Sprintf("last event: %s, %s (pos %d)", last.Kind(), render.Age(last.At, p.now()), last.Pos))
}

// activityText is what happened, without what did not.
func activityText(a projection.Activity) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{{a.Enqueued, "enqueued"}, {a.Claimed, "claimed"}, {a.Succeeded, "succeeded"}, {a.Failed, "failed"},
		{a.Released, "released"}, {a.Reclaimed, "reclaimed"}, {a.Cancelled, "cancelled"}, {a.Refused, "refused"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "no job was touched"
	}
	return strings.Join(parts, ", ")
}

// sweptBy is when a lease that ran out would have been swept, had anybody looked: the usual grace and then some.
const sweptBy = 2 * time.Minute

// printConcerns says what in q may need somebody.
func (p *program) printConcerns(q projection.QueueStatus) error {
	say := func(s render.Style, format string, args ...any) error {
		_, err := p.stdout.WriteString(p.paint(s, render.Escape(q.Name+": "+fmt.Sprintf(format, args...))) + "\n")
		return err
	}
	if q.Paused {
		why := q.Reason
		if why == "" {
			why = "no reason given"
		}
		if err := say(render.Yellow, "paused %s by %s: %s", render.Age(q.Since, p.now()), q.Actor, why); err != nil {
			return err
		}
	}
	if q.Expired > 0 {
		how, then := render.Plain, "not swept yet"
		if p.now().Sub(q.OldestLease) > sweptBy {
			how, then = render.Red, "and nobody has swept; is a worker running, or 'jobledger sweep'?"
		}
		if err := say(how, "%s ran out, the first %s, %s", render.Count(q.Expired, "lease"), render.Age(q.OldestLease, p.now()), then); err != nil {
			return err
		}
	}
	if held := q.Jobs[ledger.ClaimedState] + q.Jobs[ledger.Running]; held == 0 && !q.Paused && !q.OldestReady.IsZero() && p.now().Sub(q.OldestReady) >= time.Minute {
		if err := say(render.Yellow, "jobs are ready, and no worker holds any; is one running for this queue?"); err != nil {
			return err
		}
	}
	if q.Retrying > 0 {
		if err := say(render.Plain, "%s failed before and will be tried again", render.Count(q.Retrying, "queued job")); err != nil {
			return err
		}
	}
	if !q.NextRunAt.IsZero() {
		return say(render.Plain, "the next scheduled job runs %s", render.Age(q.NextRunAt, p.now()))
	}
	return nil
}

func (p *program) waited(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return render.Roughly(p.now().Sub(since))
}

func addTo(total *projection.QueueStatus, q projection.QueueStatus) {
	for s, n := range q.Jobs {
		total.Jobs[s] += n
	}
	total.Ready += q.Ready
	total.Scheduled += q.Scheduled
	if !q.OldestReady.IsZero() && (total.OldestReady.IsZero() || q.OldestReady.Before(total.OldestReady)) {
		total.OldestReady = q.OldestReady
	}
	total.LastHour.Add(q.LastHour)
}

// statusJSON is one queue for programs.
type statusJSON struct {
	Queue           string   `json:"queue"`
	Queued          int64    `json:"queued"`
	Claimed         int64    `json:"claimed"`
	Running         int64    `json:"running"`
	Succeeded       int64    `json:"succeeded"`
	Failed          int64    `json:"failed"`
	Cancelled       int64    `json:"cancelled"`
	Ready           int64    `json:"ready"`
	Scheduled       int64    `json:"scheduled"`
	Retrying        int64    `json:"retrying"`
	OldestReadyWait *float64 `json:"oldest_ready_wait"` // seconds
	NextRunAt       *string  `json:"next_run_at"`
	Expired         int64    `json:"expired_leases"`
	OldestLease     *string  `json:"oldest_expired_lease"`
	Paused          bool     `json:"paused"`
	PausedSince     *string  `json:"paused_since"`
	PausedBy        *string  `json:"paused_by"`
	PausedReason    *string  `json:"paused_reason"`

	LastHour projection.Activity `json:"last_hour"`
}

func (p *program) statusJSON(q projection.QueueStatus) statusJSON {
	out := statusJSON{Queue: q.Name, Queued: q.Jobs[ledger.Queued], Claimed: q.Jobs[ledger.ClaimedState], Running: q.Jobs[ledger.Running],
		Succeeded: q.Jobs[ledger.SucceededState], Failed: q.Jobs[ledger.FailedState], Cancelled: q.Jobs[ledger.CancelledState],
		Ready: q.Ready, Scheduled: q.Scheduled, Retrying: q.Retrying, NextRunAt: render.TimeOrNull(q.NextRunAt),
		Expired: q.Expired, OldestLease: render.TimeOrNull(q.OldestLease), Paused: q.Paused, LastHour: q.LastHour}
	if !q.OldestReady.IsZero() {
		seconds := float64(p.now().Sub(q.OldestReady).Microseconds()) / 1e6
		out.OldestReadyWait = &seconds
	}
	if q.Paused {
		out.PausedSince, out.PausedBy, out.PausedReason = render.TimeOrNull(q.Since), render.TextOrNull(q.Actor), render.TextOrNull(q.Reason)
	}
	return out
}
