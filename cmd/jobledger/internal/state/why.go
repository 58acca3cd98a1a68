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
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Why is the state of a job and the reasons for it, in words and for programs.
type Why struct {
	Sentences []string `json:"-"` // of which Why is made

	Job   event.JobID `json:"job"`
	State string      `json:"state"`
	Queue string      `json:"queue"`
	Why   string      `json:"why"`
	// what it waits for: time, command, queue, limit, worker, turn, owner, job, unblock; empty: nothing any more
	WaitsFor    []string    `json:"waits_for"`
	RunAt       *string     `json:"run_at"`
	Cause       event.Event `json:"cause"` // the event that brought it into its state
	Failures    int         `json:"failures"`
	MaxAttempts int         `json:"max_attempts"`
	Worker      *string     `json:"worker"`
	LeaseUntil  *string     `json:"lease_expires_at"`
	PausedSince *string     `json:"paused_since"`
	PausedBy    *string     `json:"paused_by"`
	PausedWhy   *string     `json:"paused_reason"`
	Ahead       *int64      `json:"ahead_in_lane"`                           // null unless it is queued
	Higher      *int64      `json:"ready_with_higher_priority"`              // null unless it is queued
	Fitting     []string    `json:"workers_that_may_take_it" openapi:"null"` // null unless it is queued
	ID          event.JobID `json:"id"`                                      // of the job, too

	RunningLimit int           `json:"running_limit,omitempty"` // of its queue, while it is queued
	SlotsHeldBy  []event.JobID `json:"slots_held_by,omitempty"`
	GroupLimit   int           `json:"group_limit,omitempty"` // how many of its group may be live
	BlockedBy    []event.JobID `json:"blocked_by,omitempty"`  // up to 100
}

// Explain returns why j, as it is now, is in its state at now; or why it was in its state at a moment of the
// past: then without a state if it did not exist yet, and without commands that would help now. Times in the
// text are in the zone of now.
func Explain(ctx context.Context, tx *ledger.Tx, j projection.Job, past query.Past, now time.Time) (why Why,
	err error) {
	at := past.Or(now)
	r := reasons{now: at.At.In(now.Location()), past: past.Given}
	r.Why, err = status.Explain(ctx, tx, j, at)
	if err != nil || r.Job.State == 0 {
		return why, err
	}
	if r.past {
		r.say("As of %s (pos %d):", r.local(past.At), past.Pos)
	}
	return r.explain(), nil
}

func (r *reasons) explain() Why {
	switch {
	case r.Job.State == event.Queued:
		r.queued()
	case r.Job.State.Held():
		r.held()
	case r.Job.State == event.Blocked:
		r.blocked()
	default:
		r.ended()
	}
	r.schedule()
	return r.answer()
}

// schedule names the schedule whose job it is.
func (r *reasons) schedule() {
	switch j := r.Job; {
	case j.Schedule == "":
	case j.Tick.IsZero():
		r.say("It was run by hand, by the schedule %s.", j.Schedule)
	default:
		r.say("It was enqueued by the schedule %s, for %s.", j.Schedule, r.local(j.Tick))
	}
}

// reasons collects the sentences of an explanation, and what the job waits for.
type reasons struct {
	status.Why
	now      time.Time
	past     bool // now is a moment of the past, in which no command can help any more
	text     []string
	waitsFor []string
}

func (r *reasons) say(format string, args ...any) {
	r.text = append(r.text, fmt.Sprintf(format, args...))
}

func (r *reasons) wait(what, format string, args ...any) {
	r.waitsFor = append(r.waitsFor, what)
	r.say(format, args...)
}

// hint is a command that would help now; empty for a moment of the past.
func (r *reasons) hint(format string, args ...any) string {
	if r.past {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// when is t in full, with its distance from now.
func (r *reasons) when(t time.Time) string {
	return fmt.Sprintf("%s (%s)", r.local(t), words.Age(t, r.now))
}

// local is t in full, in the zone of now.
func (r *reasons) local(t time.Time) string { return words.Time(t.In(r.now.Location())) }

func (r *reasons) queued() {
	j, now := r.Job, r.now
	due := !j.RunAt.After(now)
	r.say("Job %s is queued in %s: %s.", j.ID, j.Queue, r.cause())
	if r.Moved != nil {
		moved := r.Moved.Body.(*event.Rescheduled)
		r.say("%s rescheduled it %s: %s.", r.Moved.Actor, words.AgeOrOn(r.Moved.At, now),
			words.ReasonOrNone(moved.Reason))
	}
	if due {
		r.say("It has been ready since %s.", r.when(j.RunAt))
	} else {
		r.wait("time", "It may not run before %s.", r.when(j.RunAt))
	}
	r.lastCommand(due)
	if r.Queue.Paused {
		r.wait("queue", "The queue %s is paused: %s did that %s: %s%s.", j.Queue,
			r.Queue.Actor, words.AgeOrOn(r.Queue.Since, now), words.ReasonOrNone(r.Queue.Reason),
			r.hint("; 'jobledger resume -q %s' ends it", j.Queue))
	}
	full := r.limit()
	fit := r.Fitting
	if len(fit) == 0 && event.RunOf(j.Requires) != "" {
		again := ""
		if batch := j.Tags[BatchTag]; batch != "" {
			again = r.hint(" Where that has ended, 'jobledger run --resume %s' goes on.", words.QuoteShell(batch))
		}
		r.wait("worker", "Only the process of its 'jobledger run' may take it.%s", again)
	} else if len(fit) == 0 {
		r.wait("worker", "%s", r.noWorker())
	}
	if r.Ahead+r.Higher > 0 {
		text := fmt.Sprintf("%s of its lane %s before it", words.Count(r.Ahead, "job"),
			words.Plural(r.Ahead, "comes", "come"))
		if r.Higher > 0 {
			text += fmt.Sprintf(", and %s of a higher priority %s ready", words.Count(r.Higher, "job"),
				words.Plural(r.Higher, "is", "are"))
		}
		if due && !full && !r.Queue.Paused && len(fit) > 0 {
			r.waitsFor = append(r.waitsFor, "turn")
		}
		r.say("%s.", strings.ToUpper(text[:1])+text[1:])
	}
	if r.Groups > 0 {
		r.say("%s of its lane %s before its own.", words.Count(r.Groups, "group"),
			words.Plural(r.Groups, "comes", "come"))
	}
	if len(fit) > 0 {
		text := fmt.Sprintf("%s may take it: %s.", words.Count(int64(len(fit)), "running worker"),
			words.WorkerNames(fit))
		if due && !full && !r.Queue.Paused && r.Ahead+r.Higher == 0 {
			r.wait("worker", "It is the next in its lane; %s", text)
		} else {
			r.say("%s", text)
		}
	}
}

// cause says what put the job into its queue.
func (r *reasons) cause() string {
	j, e, now := r.Job, r.Cause, r.now
	switch b := e.Body.(type) {
	case *event.Enqueued:
		text := fmt.Sprintf("%s enqueued it %s", e.Actor, words.AgeOrOn(e.At, now))
		if b.RunAt.After(e.At) {
			text += " to run at " + r.local(b.RunAt)
		}
		return text
	case *event.Failed:
		return fmt.Sprintf("attempt %d by %s failed %s with %s, failure %d of %d, and it is tried again after a "+
			"pause of %s",
			e.Attempt, e.Worker.Name, words.AgeOrOn(e.At,
				now), words.FailureText(words.OrNone(b.ErrorCode), projection.Exit{Code: b.ExitCode, Signal: b.Signal}),
			j.Failures, j.MaxAttempts, words.Briefly(b.RetryAt.Sub(e.At)))
	case *event.Reclaimed:
		return fmt.Sprintf("attempt %d was taken from %s %s because %s, failure %d of %d, and it is tried again "+
			"after a pause of %s",
			e.Attempt, e.Worker.Name, words.AgeOrOn(e.At,
				now), reclaimReason(b.Reason), j.Failures, j.MaxAttempts, words.Briefly(b.RetryAt.Sub(e.At)))
	case *event.Released:
		if b.Snooze {
			return fmt.Sprintf("the job itself asked %s to be run later (snooze %d): %s", words.AgeOrOn(e.At, now),
				j.Snoozes, words.ReasonOrNone(b.Reason))
		}
		return fmt.Sprintf("%s gave it back %s, which is not a failure: %s", e.Worker.Name,
			words.AgeOrOn(e.At, now), words.ReasonOrNone(b.Reason))
	case *event.Unblocked:
		if b.Because == "" {
			return fmt.Sprintf("%s lifted its hold %s: %s", e.Actor, words.AgeOrOn(e.At, now),
				words.ReasonOrNone(b.Reason))
		}
		return fmt.Sprintf("it waited for %s, which ended %s", b.Because, words.AgeOrOn(e.At, now))
	case *event.Retried:
		if b.Because != "" {
			return fmt.Sprintf("%s, which it waits for, was retried %s", b.Because, words.AgeOrOn(e.At, now))
		}
		return fmt.Sprintf("%s queued it again %s: %s", e.Actor, words.AgeOrOn(e.At, now),
			words.ReasonOrNone(b.Reason))
	}
	return "it was put there " + words.AgeOrOn(e.At, now)
}

func reclaimReason(reason string) string {
	if reason == event.MaxRuntime {
		return "it had run for longer than its max runtime"
	}
	return "its lease had run out"
}

// noWorker says which condition no live worker meets.
func (r *reasons) noWorker() string {
	var queues, refusals []string
	for _, worker := range r.Live {
		queues = append(queues, worker.Queues...)
	}
	for _, worker := range r.Serving {
		if _, why := projection.Fits(r.Job, worker.Version, worker.Capabilities); !slices.Contains(refusals, why) {
			refusals = append(refusals, why)
		}
	}
	slices.Sort(queues)
	queues = slices.Compact(queues)
	text := ""
	start := r.hint("'jobledger %s' starts one", WorkLine(r.Job.Queue, r.Job.Version, r.Job.Requires, "CMD"))
	switch serving := int64(len(r.Serving)); {
	case serving > 0:
		text := fmt.Sprintf("%s of the queue %s %s running, but none may take it: %s.",
			words.Count(serving, "worker"), r.Job.Queue, words.Plural(serving, "is", "are"),
			strings.Join(refusals, "; "))
		return text + r.hint(" %s that may.", start)
	case len(queues) > 0:
		text = fmt.Sprintf("No running worker serves the queue %s; those that run serve %s.", r.Job.Queue,
			strings.Join(queues, ", "))
	default:
		text = "No worker is known to be running" + r.hint("; %s", start) + "."
	}
	if gone := Gone(r.Service, r.now); gone != "" {
		text += " " + strings.ToUpper(gone[:1]) + gone[1:] + "."
	}
	if r.Unannounced {
		text += " A process that did not announce itself claimed from it in the last hour."
	}
	return text
}

func (r *reasons) answer() Why {
	j := r.Job
	out := Why{Sentences: r.text, Why: strings.Join(r.text, " "), Job: j.ID, ID: j.ID, State: j.State.String(),
		Queue:    j.Queue,
		WaitsFor: append([]string{}, r.waitsFor...), RunAt: words.TimeOrNull(j.RunAt), Cause: r.Cause,
		Failures: j.Failures, MaxAttempts: j.MaxAttempts, Worker: words.TextOrNull(j.Worker.Name),
		LeaseUntil: words.TimeOrNull(j.LeaseUntil)}
	if j.State == event.Queued {
		out.RunningLimit, out.GroupLimit = r.Limit.Running, r.Limit.GroupBound(j.Group)
		for _, o := range r.Holders {
			out.SlotsHeldBy = append(out.SlotsHeldBy, o.ID)
		}
		out.Ahead, out.Higher, out.Fitting = &r.Ahead, &r.Higher, []string{}
		for _, worker := range r.Fitting {
			out.Fitting = append(out.Fitting, worker.Name)
		}
	}
	for _, w := range r.Waits {
		if !w.Hold {
			out.BlockedBy = append(out.BlockedBy, w.Job.ID)
		}
	}
	if q := r.Queue; q.Paused {
		out.PausedSince, out.PausedBy = words.TimeOrNull(q.Since), words.TextOrNull(q.Actor)
		out.PausedWhy = words.TextOrNull(q.Reason)
	}
	return out
}
