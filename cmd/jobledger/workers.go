package main

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// workersVerb answers who is alive.
func workersVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "workers", Group: cli.GroupSee, Usage: "show the worker processes and what they hold",
		About: "A worker is working, or idle, or silent: not seen for three beats, and it did not report its " +
			"stop. SEEN is its last sign of life. A claimer that is no worker process is known by its " +
			"heartbeats only, and silent once all of its leases have run out. Next to each job stand how long " +
			"it has been held, the age of its last heartbeat, and what it reported. A job in " +
			"parentheses was cancelled or reclaimed while its command may still run. --all shows those too that " +
			"have stopped, and those that have been silent for more than a day. SEEN is the last sign of life: " +
			"presence, which a worker records every 15s, or an event of it. One is silent that has shown none " +
			"for 45s, or none since a lease of its ran out. With --as-of it is how things stood then: one is " +
			"silent too of which nothing shows, up to now, that it lived then.",
		Flags: []cli.Flag{
			cli.AsOfFlag(),
			&cli.BoolFlag{Name: "all", Usage: "every worker that ever started"},
			cli.WideFlag(),
		},
		Examples: []cli.Example{
			{"jobledger workers", "who is alive, since when, and what they hold"},
			{"jobledger workers --all --json", "an object for each, with its jobs"},
			{"jobledger workers --as-of 02:15", "who held what at a quarter past two"},
		},
		Exits: []int{cli.ExitNothing},
		Run: func(c *cli.Context) error {
			var workers []status.Worker
			p := p // with --as-of, a program with its clock stopped
			err := p.Read(c.Context, func(tx *ledger.Tx) error {
				past, err := p.PastFlag(c, tx)
				switch {
				case err != nil:
				case past.Given:
					workers, err = status.WorkersAsOf(c.Context, tx, past.Moment, c.Bool("all"))
					p = p.at(past.Moment)
				default:
					workers, err = status.Workers(c.Context, tx, p.Now(), c.Bool("all"))
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case len(workers) == 0 && c.Bool("all"):
				return cli.Exitf(cli.ExitNothing, "no worker has ever started")
			case len(workers) == 0:
				return cli.WithHint(cli.Exitf(cli.ExitNothing, "no worker is there"),
					"--all shows those that have stopped")
			case !p.JSON:
				return p.printWorkers(workers, c.Bool("wide"))
			}
			for _, w := range workers {
				if err := p.PrintJSON(toWorkerJSON(w)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// jobsShown is how many jobs of one worker people are shown.
const jobsShown = 10

func (p *program) printWorkers(workers []status.Worker, wide bool) error {
	t := &cli.Table{Columns: []cli.Column{{Title: "WORKER", Least: 8}, {Title: "STATE", State: true},
		{Title: "UP", Right: true, Drop: 5}, {Title: "SEEN", Right: true},
		{Title: "JOB"}, {Title: "HELD", Right: true, Drop: 1}, {Title: "BEAT", Right: true, Drop: 4},
		{Title: "PROGRESS", Drop: 3}, {Title: "QUEUES", Drop: 2},
		{Title: "CAPABILITIES", Drop: 7}, {Title: "VERSION", Drop: 8}, {Title: "PROCESS", Drop: 6}}}
	now := p.Now()
	since := func(at time.Time) string { return render.Since(at, now) }
	for _, w := range workers {
		up := "-"
		if w.State != status.Stopped && !w.StartedAt.IsZero() {
			up = render.Roughly(max(0, now.Sub(w.StartedAt)))
		}
		first := []string{w.Name, string(w.State), up, since(w.SeenAt)}
		rest := []string{strings.Join(w.Queues, " "), strings.Join(w.Capabilities, " "), w.Version,
			fmt.Sprintf("%d on %s", w.PID, render.OrNone(w.Host))}
		if len(w.Jobs)+len(w.Lost) == 0 {
			t.Add(append(append(first, "-", "", "", ""), rest...)...)
		}
		for i, j := range w.Jobs {
			if i == jobsShown {
				t.Add(append(blanks(4), append([]string{fmt.Sprintf("… %d more", len(w.Jobs)-i)}, blanks(7)...)...)...)
				break
			}
			t.Add(append(append(first, string(j.ID), since(j.ClaimedAt), since(j.HeartbeatAt), progressText(j)),
				rest...)...)
			first, rest = blanks(4), blanks(4)
		}
		for i, c := range w.Lost {
			if i == jobsShown {
				more := fmt.Sprintf("(… %d more)", len(w.Lost)-i)
				t.Add(append(blanks(4), append([]string{more}, blanks(7)...)...)...)
				break
			}
			what := fmt.Sprintf("%s %s, may run until %s", c.Ending, render.AgeOrOn(c.EndedAt, now),
				render.Time(c.Until.In(now.Location())))
			t.Add(append(append(first, fmt.Sprintf("(%s)", c.Job), since(c.ClaimedAt), since(c.HeartbeatAt), what),
				rest...)...)
			first, rest = blanks(4), blanks(4)
		}
	}
	t.Wide = wide
	return p.PrintTable(t)
}

func blanks(n int) []string { return make([]string, n) }

// progressText is what the last heartbeat reported.
func progressText(j projection.Job) string {
	var parts []string
	if j.Progress != nil {
		parts = append(parts, fmt.Sprintf("%.0f%%", 100**j.Progress))
	}
	if j.Note != "" {
		parts = append(parts, j.Note)
	}
	return strings.Join(parts, " ")
}

// workerJSON is a worker for programs.
type workerJSON struct {
	Worker       string    `json:"worker"`
	State        string    `json:"state"`
	Boot         string    `json:"boot"`
	Host         *string   `json:"host"`
	PID          int       `json:"pid"`
	Version      *string   `json:"version"`
	Queues       []string  `json:"queues"`
	Capabilities []string  `json:"capabilities"`
	StartedAt    *string   `json:"started_at"`
	StoppedAt    *string   `json:"stopped_at"`
	SeenAt       *string   `json:"seen_at"`
	Jobs         []heldJob `json:"jobs"`

	Lost []state.LostClaim `json:"lost_claims,omitempty"`
}

type heldJob struct {
	Job            event.JobID `json:"job"`
	Queue          string      `json:"queue"`
	State          string      `json:"state"`
	Attempt        int         `json:"attempt"`
	ClaimedAt      *string     `json:"claimed_at"`
	HeartbeatAt    *string     `json:"heartbeat_at"`
	LeaseExpiresAt *string     `json:"lease_expires_at"`
	Progress       *float64    `json:"progress"`
	Note           *string     `json:"note"`
	ID             event.JobID `json:"id"` // of the job, too
}

func toWorkerJSON(w status.Worker) workerJSON {
	out := workerJSON{Worker: w.Name, State: string(w.State), Boot: w.Boot, Host: render.TextOrNull(w.Host),
		PID: w.PID, Version: render.TextOrNull(w.Version),
		Queues: append([]string{}, w.Queues...), Capabilities: append([]string{},
			w.Capabilities...), StartedAt: render.TimeOrNull(w.StartedAt),
		StoppedAt: render.TimeOrNull(w.StoppedAt), SeenAt: render.TimeOrNull(w.SeenAt), Jobs: []heldJob{},
		Lost: state.NewLostClaims(w.Lost)}
	for _, j := range w.Jobs {
		out.Jobs = append(out.Jobs, heldJob{Job: j.ID, ID: j.ID, Queue: j.Queue, State: j.State.String(),
			Attempt:     j.Attempt,
			ClaimedAt:   render.TimeOrNull(j.ClaimedAt),
			HeartbeatAt: render.TimeOrNull(j.HeartbeatAt), LeaseExpiresAt: render.TimeOrNull(j.LeaseUntil),
			Progress: j.Progress, Note: render.TextOrNull(j.Note)})
	}
	return out
}
