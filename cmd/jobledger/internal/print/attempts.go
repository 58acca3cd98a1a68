package print

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
)

// Attempts is a table of claims, to which [AddAttempt] adds.
func Attempts() *words.Table {
	return &words.Table{Columns: []words.Column{{Title: "JOB"}, {Title: "ATTEMPT", Right: true},
		{Title: "QUEUE", Drop: 4}, {Title: "WORKER", Least: 8, Drop: 1},
		{Title: "PID", Right: true, Drop: 6}, {Title: "HOST", Drop: 5}, {Title: "CLAIMED"}, {Title: "LASTED",
			Right: true, Drop: 3}, {Title: "OUTCOME", State: true}, {Title: "EXIT", Drop: 2}}}
}

// AddAttempt adds the line of a claim, which may be open at now.
func AddAttempt(t *words.Table, a attempts.Attempt, now time.Time) {
	t.Add(string(a.Job), fmt.Sprint(a.Attempt), a.Queue, a.Worker.Name, fmt.Sprint(a.Worker.PID), a.Worker.Host,
		words.Millis(a.ClaimedAt.In(now.Location())), lasted(a, now), outcomeOf(a), endText(a))
}

// AttemptJSON is a claim for programs.
type AttemptJSON struct {
	Job           event.JobID `json:"job"`
	Attempt       int         `json:"attempt"`
	Queue         string      `json:"queue"`
	Worker        string      `json:"worker"`
	Boot          string      `json:"boot"`
	Host          *string     `json:"host"`
	PID           int         `json:"pid"`
	ClaimedAt     string      `json:"claimed_at"`
	LastHeartbeat *string     `json:"last_heartbeat"`
	EndedAt       *string     `json:"ended_at"`
	Outcome       *string     `json:"outcome"`
	ExitCode      *int        `json:"exit_code"`
	Signal        *string     `json:"signal"`
	ID            event.JobID `json:"id"` // of the job, too
	Version       *string     `json:"version"`
	Code          *string     `json:"code"`
	CPUUser       *float64    `json:"cpu_user,omitempty"`   // processor time of its processes, in seconds
	CPUSystem     *float64    `json:"cpu_system,omitempty"` // of the system on their behalf, in seconds
	MaxRSS        *int64      `json:"max_rss,omitempty"`    // the most memory that one of them had, in bytes
	ReplacedAt    *string     `json:"payload_replaced_at,omitempty"`

	AfterMaxRuntime bool `json:"after_max_runtime,omitempty"` // it succeeded, beyond its max runtime
}

// NewAttemptJSON is a for programs.
func NewAttemptJSON(a attempts.Attempt) AttemptJSON {
	out := AttemptJSON{Job: a.Job, ID: a.Job, Attempt: a.Attempt, Queue: a.Queue, Worker: a.Worker.Name,
		Boot: a.Worker.Boot, Host: words.TextOrNull(a.Worker.Host),
		PID: a.Worker.PID, ClaimedAt: words.JSONTime(a.ClaimedAt),
		LastHeartbeat: words.TimeOrNull(a.LastHeartbeat), EndedAt: words.TimeOrNull(a.EndedAt),
		ExitCode: a.ExitCode, Signal: words.TextOrNull(a.Signal), Version: words.TextOrNull(a.Worker.Version),
		Code: words.TextOrNull(a.Code), ReplacedAt: words.TimeOrNull(a.Replaced),
		AfterMaxRuntime: a.AfterMaxRuntime}
	if a.Cost.CPU() > 0 {
		out.CPUUser, out.CPUSystem = new(a.Cost.CPUUser.Seconds()), new(a.Cost.CPUSystem.Seconds())
	}
	if a.Cost.MaxRSS > 0 {
		out.MaxRSS = &a.Cost.MaxRSS
	}
	if a.Outcome != 0 {
		out.Outcome = words.TextOrNull(a.Outcome.String())
	}
	return out
}

// lasted is how long the claim held, or has held up to now.
func lasted(a attempts.Attempt, now time.Time) string {
	if a.EndedAt.IsZero() {
		return words.Briefly(now.Sub(a.ClaimedAt))
	}
	return words.Gap(a.EndedAt.Sub(a.ClaimedAt))
}

func outcomeOf(a attempts.Attempt) string {
	if a.Outcome == 0 {
		return "open"
	}
	return a.Outcome.String()
}

// endText is what else there is to say of the claim's end.
func endText(a attempts.Attempt) string {
	if a.AfterMaxRuntime {
		return strings.TrimSpace(exitText(a) + " after max runtime")
	}
	return exitText(a)
}

// exitText is how the claim's process ended, where there was one.
func exitText(a attempts.Attempt) string {
	switch {
	case a.Signal != "":
		return a.Signal
	case a.ExitCode != nil:
		return fmt.Sprint(*a.ExitCode)
	}
	return ""
}
