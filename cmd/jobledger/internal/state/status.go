package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// Queue is the state of one queue as JSON.
type Queue struct {
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

	LastHour status.Activity `json:"last_hour"`

	Lost []LostClaim `json:"lost_claims,omitempty"`

	Blocked int64 `json:"blocked,omitempty"`
}

// LostClaim is a claim that was lost while its command may still run, as JSON.
type LostClaim struct {
	Job       event.JobID `json:"job"`
	Attempt   int         `json:"attempt"`
	Worker    string      `json:"worker"`
	Host      *string     `json:"host"`
	PID       int         `json:"pid"`
	ClaimedAt *string     `json:"claimed_at"`
	LostAt    *string     `json:"lost_at"`
	Ending    string      `json:"ending"` // cancelled or reclaimed
	Until     *string     `json:"may_run_until"`
	ID        event.JobID `json:"id"` // of the job, too
	CannotEnd string      `json:"cannot_end,omitempty"`
}

// NewLostClaims are claims as JSON.
func NewLostClaims(claims []projection.LostClaim) (out []LostClaim) {
	for _, c := range claims {
		out = append(out, LostClaim{Job: c.Job, ID: c.Job, Attempt: c.Attempt, Worker: c.Worker.Name,
			Host: words.TextOrNull(c.Worker.Host), PID: c.Worker.PID, ClaimedAt: words.TimeOrNull(c.ClaimedAt),
			LostAt: words.TimeOrNull(c.EndedAt), Ending: c.Ending.String(), Until: words.TimeOrNull(c.Until),
			CannotEnd: c.CannotEnd})
	}
	return out
}

// NewQueue is q at now.
func NewQueue(q status.Queue, now time.Time) Queue {
	out := Queue{Queue: q.Name, Queued: q.Jobs[event.Queued], Claimed: q.Jobs[event.ClaimedState],
		Running:   q.Jobs[event.Running],
		Succeeded: q.Jobs[event.SucceededState], Failed: q.Jobs[event.FailedState],
		Cancelled: q.Jobs[event.CancelledState], Blocked: q.Jobs[event.Blocked],
		Ready: q.Ready, Scheduled: q.Scheduled, Retrying: q.Retrying, NextRunAt: words.TimeOrNull(q.NextRunAt),
		Expired: q.Expired, OldestLease: words.TimeOrNull(q.OldestLease), Paused: q.Paused, LastHour: q.LastHour,
		Lost: NewLostClaims(q.Lost)}
	if !q.OldestReady.IsZero() {
		out.OldestReadyWait = new(float64(now.Sub(q.OldestReady).Microseconds()) / 1e6)
	}
	if q.Paused {
		out.PausedSince, out.PausedBy, out.PausedReason = words.TimeOrNull(q.Since), words.TextOrNull(q.Actor),
			words.TextOrNull(q.Reason)
	}
	return out
}

// Activity describes in words what happened.
func Activity(a status.Activity) string {
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

// Add adds the counts of q to total.
func Add(total *status.Queue, q status.Queue) {
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

// NamedQueue returns the queue of this name; known is false where the ledger has never seen the name.
func NamedQueue(ctx context.Context, store *ledger.Store, name string) (q projection.Queue, known bool,
	err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		n, err := tx.Name(ctx, name)
		if known = n != 0; err != nil {
			return err
		}
		q, err = projection.GetQueue(ctx, tx, name)
		return err
	})
	return q, known, err
}

// Gone says how the workers of a queue went; empty if there were none.
func Gone(s status.Service, now time.Time) string {
	if len(s.Gone) == 0 {
		return ""
	}
	last := s.Gone[0]
	at := fmt.Sprintf("%s (%s)", words.Time(last.SeenAt.In(now.Location())), words.Age(last.SeenAt, now))
	if last.State == status.Stopped {
		return "its workers stopped, the last at " + at
	}
	return "its workers went silent, the last at " + at
}

// WorkArgs is the command 'work' that starts a worker for jobs of this queue, version and labels.
func WorkArgs(queue, version string, requires []string) string {
	text := "work -q " + queue
	if version != "" {
		text += " --version " + words.QuoteShell(version)
	}
	for _, label := range requires {
		if label == event.LabelArgv {
			text += " --commands"
			continue
		}
		text += " --capability " + words.QuoteShell(label)
	}
	return text
}

// WorkLine is WorkArgs with a word for its command, unless the jobs carry theirs.
func WorkLine(queue, version string, requires []string, command string) string {
	text := WorkArgs(queue, version, requires)
	if slices.Contains(requires, event.LabelArgv) {
		return text
	}
	return text + " -- " + command
}
