package print

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// JobsShown is how many jobs of one worker, or of one message, people are shown.
const JobsShown = 10

// Workers is a table of workers and what they hold at now.
func Workers(workers []status.Worker, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "WORKER", Least: 8}, {Title: "STATE", State: true},
		{Title: "UP", Right: true, Drop: 5}, {Title: "SEEN", Right: true},
		{Title: "JOB"}, {Title: "HELD", Right: true, Drop: 1}, {Title: "BEAT", Right: true, Drop: 4},
		{Title: "PROGRESS", Drop: 3}, {Title: "QUEUES", Drop: 2},
		{Title: "CAPABILITIES", Drop: 7}, {Title: "VERSION", Drop: 8}, {Title: "PROCESS", Drop: 6}}}
	since := func(at time.Time) string { return words.Since(at, now) }
	for _, w := range workers {
		up := "-"
		if w.State != status.Stopped && !w.StartedAt.IsZero() {
			up = words.Roughly(max(0, now.Sub(w.StartedAt)))
		}
		first := []string{w.Name, string(w.State), up, since(w.SeenAt)}
		rest := []string{strings.Join(w.Queues, " "), strings.Join(w.Capabilities, " "), w.Version,
			fmt.Sprintf("%d on %s%s", w.PID, words.OrNone(w.Host), GoneText(w))}
		if len(w.Jobs)+len(w.Lost) == 0 {
			t.Add(append(append(first, "-", "", "", ""), rest...)...)
		}
		for i, j := range w.Jobs {
			if i == JobsShown {
				t.Add(append(blanks(4), append([]string{fmt.Sprintf("… %d more", len(w.Jobs)-i)}, blanks(7)...)...)...)
				break
			}
			t.Add(append(append(first, string(j.ID), since(j.ClaimedAt), since(j.HeartbeatAt), progressText(j)),
				rest...)...)
			first, rest = blanks(4), blanks(4)
		}
		for i, c := range w.Lost {
			if i == JobsShown {
				more := fmt.Sprintf("(… %d more)", len(w.Lost)-i)
				t.Add(append(blanks(4), append([]string{more}, blanks(7)...)...)...)
				break
			}
			t.Add(append(append(first, fmt.Sprintf("(%s)", c.Job), since(c.ClaimedAt), since(c.HeartbeatAt),
				MayRun(c, now)), rest...)...)
			first, rest = blanks(4), blanks(4)
		}
	}
	return t
}

// GoneText follows the process of w where that has ended without saying so.
func GoneText(w status.Worker) string {
	if w.Gone {
		return ", gone"
	}
	return ""
}

// MayRun says until when the command of a lost claim may run, and why.
func MayRun(c projection.LostClaim, now time.Time) string {
	text := fmt.Sprintf("%s %s, may run until %s", c.Ending, words.AgeOrOn(c.EndedAt, now),
		words.Time(c.Until.In(now.Location())))
	if c.CannotEnd != "" {
		text += ", cannot be ended: " + c.CannotEnd
	}
	return text
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
	if j.CannotEnd != "" {
		parts = append(parts, "cannot be ended: "+j.CannotEnd)
	}
	return strings.Join(parts, " ")
}

// WorkerJSON is a worker for programs.
type WorkerJSON struct {
	Worker       string        `json:"worker"`
	State        string        `json:"state"`
	Boot         string        `json:"boot"`
	Host         *string       `json:"host"`
	PID          int           `json:"pid"`
	Version      *string       `json:"version"`
	Queues       []string      `json:"queues"`
	Capabilities []string      `json:"capabilities"`
	StartedAt    *string       `json:"started_at"`
	StoppedAt    *string       `json:"stopped_at"`
	SeenAt       *string       `json:"seen_at"`
	Gone         bool          `json:"gone,omitempty"`
	Jobs         []HeldJobJSON `json:"jobs"`

	Lost []state.LostClaim `json:"lost_claims,omitempty"`
}

// HeldJobJSON is a job that a worker holds.
type HeldJobJSON struct {
	Job            event.JobID `json:"job"`
	Queue          string      `json:"queue"`
	State          string      `json:"state"`
	Attempt        int         `json:"attempt"`
	ClaimedAt      *string     `json:"claimed_at"`
	HeartbeatAt    *string     `json:"heartbeat_at"`
	LeaseExpiresAt *string     `json:"lease_expires_at"`
	Progress       *float64    `json:"progress"`
	Note           *string     `json:"note"`
	CannotEnd      string      `json:"cannot_end,omitempty"`
	ID             event.JobID `json:"id"` // of the job, too
}

// NewWorkerJSON is w for programs.
func NewWorkerJSON(w status.Worker) WorkerJSON {
	out := WorkerJSON{Worker: w.Name, State: string(w.State), Boot: w.Boot, Host: words.TextOrNull(w.Host),
		PID: w.PID, Version: words.TextOrNull(w.Version),
		Queues: append([]string{}, w.Queues...), Capabilities: append([]string{},
			w.Capabilities...), StartedAt: words.TimeOrNull(w.StartedAt),
		StoppedAt: words.TimeOrNull(w.StoppedAt), SeenAt: words.TimeOrNull(w.SeenAt), Gone: w.Gone,
		Jobs: []HeldJobJSON{},
		Lost: state.NewLostClaims(w.Lost)}
	for _, j := range w.Jobs {
		out.Jobs = append(out.Jobs, HeldJobJSON{Job: j.ID, ID: j.ID, Queue: j.Queue, State: j.State.String(),
			Attempt:     j.Attempt,
			ClaimedAt:   words.TimeOrNull(j.ClaimedAt),
			HeartbeatAt: words.TimeOrNull(j.HeartbeatAt), LeaseExpiresAt: words.TimeOrNull(j.LeaseUntil),
			Progress: j.Progress, Note: words.TextOrNull(j.Note), CannotEnd: j.CannotEnd})
	}
	return out
}
