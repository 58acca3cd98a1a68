package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// workersVerb answers who is alive.
func workersVerb(p *program) verb {
	return verb{
		name: "workers", group: groupSee, usage: "show the worker processes and what they hold",
		about: "A worker is working, or idle, or silent: not seen for three beats, and it did not say goodbye. SEEN is its last sign of " +
			"life. A claimer that is no worker process is known by its heartbeats only, and silent once all of its leases have run out. " +
			"Beside each job stand how long it has been held, the age of its last heartbeat, and what that told. " +
			"--all shows those too that have stopped, and those that have been silent for more than a day. " +
			"With --as-of it is what the events up to that moment say; who was idle and died is not among them.",
		flags: []cli.Flag{
			asOfFlag(),
			&cli.BoolFlag{Name: "all", Usage: "every worker that ever started"},
		},
		examples: []example{
			{"jobledger workers", "who is alive, since when, and what they hold"},
			{"jobledger workers --all --json", "an object for each, with its jobs"},
			{"jobledger workers --as-of 02:15", "who held what at a quarter past two"},
		},
		exits: []int{exitNothing},
		run: func(c *cli.Context) error {
			var workers []projection.Worker
			p := p // with --as-of, its clock stands there
			err := p.read(c.Context, func(tx *ledger.Tx) error {
				m, given, err := p.momentOf(c, "as-of", tx)
				switch {
				case err != nil:
				case given:
					workers, err = projection.WorkersAsOf(c.Context, tx, m, c.Bool("all"))
					p = p.at(m)
				default:
					workers, err = projection.Workers(c.Context, tx, p.now(), c.Bool("all"))
				}
				return err
			})
			switch {
			case err != nil:
				return err
			case len(workers) == 0 && c.Bool("all"):
				return exitf(exitNothing, "no worker has ever started")
			case len(workers) == 0:
				return withHint(exitf(exitNothing, "no worker is there"), "--all shows those that have stopped")
			case !p.json:
				return p.printWorkers(workers)
			}
			for _, w := range workers {
				if err := p.printJSON(toWorkerJSON(w)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// jobsShown is how many jobs of one worker people are shown.
const jobsShown = 10

func (p *program) printWorkers(workers []projection.Worker) error {
	t := &table{columns: []column{{title: "WORKER", least: 8}, {title: "STATE", state: true}, {title: "UP", right: true}, {title: "SEEN", right: true},
		{title: "JOB"}, {title: "HELD", right: true}, {title: "BEAT", right: true}, {title: "PROGRESS", least: 8}, {title: "QUEUES", least: 8},
		{title: "CAPABILITIES", least: 5}, {title: "VERSION", least: 5}, {title: "PROCESS", least: 8}}}
	now := p.now()
	since := func(at time.Time) string { return render.Roughly(max(0, now.Sub(at))) }
	for _, w := range workers {
		up := "-"
		if w.State != projection.Stopped && !w.StartedAt.IsZero() {
			up = since(w.StartedAt)
		}
		first := []string{w.Name, string(w.State), up, since(w.SeenAt)}
		rest := []string{strings.Join(w.Queues, " "), strings.Join(w.Capabilities, " "), w.Version, fmt.Sprintf("%d on %s", w.PID, render.OrNone(w.Host))}
		if len(w.Jobs) == 0 {
			t.add(append(append(first, "-", "", "", ""), rest...)...)
		}
		for i, j := range w.Jobs {
			if i == jobsShown {
				t.add(append(blanks(4), append([]string{fmt.Sprintf("… %d more", len(w.Jobs)-i)}, blanks(7)...)...)...)
				break
			}
			t.add(append(append(first, string(j.ID), since(j.ClaimedAt), since(j.HeartbeatAt), progressText(j)), rest...)...)
			first, rest = blanks(4), blanks(4)
		}
	}
	return p.printTable(t)
}

func blanks(n int) []string { return make([]string, n) }

// progressText is what the last heartbeat told.
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
}

type heldJob struct {
	Job            ledger.JobID `json:"job"`
	Queue          string       `json:"queue"`
	State          string       `json:"state"`
	Attempt        int          `json:"attempt"`
	ClaimedAt      *string      `json:"claimed_at"`
	HeartbeatAt    *string      `json:"heartbeat_at"`
	LeaseExpiresAt *string      `json:"lease_expires_at"`
	Progress       *float64     `json:"progress"`
	Note           *string      `json:"note"`
}

func toWorkerJSON(w projection.Worker) workerJSON {
	out := workerJSON{Worker: w.Name, State: string(w.State), Boot: w.Boot, Host: render.TextOrNull(w.Host), PID: w.PID, Version: render.TextOrNull(w.Version),
		Queues: append([]string{}, w.Queues...), Capabilities: append([]string{}, w.Capabilities...), StartedAt: render.TimeOrNull(w.StartedAt),
		StoppedAt: render.TimeOrNull(w.StoppedAt), SeenAt: render.TimeOrNull(w.SeenAt), Jobs: []heldJob{}}
	for _, j := range w.Jobs {
		out.Jobs = append(out.Jobs, heldJob{Job: j.ID, Queue: j.Queue, State: j.State.String(), Attempt: j.Attempt, ClaimedAt: render.TimeOrNull(j.ClaimedAt),
			HeartbeatAt: render.TimeOrNull(j.HeartbeatAt), LeaseExpiresAt: render.TimeOrNull(j.LeaseUntil), Progress: j.Progress, Note: render.TextOrNull(j.Note)})
	}
	return out
}
