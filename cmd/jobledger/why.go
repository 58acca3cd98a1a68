package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// whyVerb answers "why does nothing happen to this job".
func whyVerb(p *program) verb {
	return verb{
		name: "why", group: groupSee, usage: "say in words why a job stands where it stands",
		about: "What a queued job waits for: its time, a paused queue, its turn, or a worker that may take it; who holds one " +
			"that is running, and for how long yet; how one that has ended came to its end. Workers that only claim, without " +
			"'jobledger work', do not say which queues they serve, so they are not compared.",
		args: "JOB", minArgs: 1, maxArgs: 1,
		examples: []example{
			{"jobledger why 01KDY9FY88", "what the job waits for"},
			{"jobledger why 01KDY9FY88 --json | jq .waits_for", "the same for a script: time, queue, turn, worker, owner"},
		},
		exits: []int{exitNoJob},
		run: func(c *cli.Context) error {
			var w projection.Why
			err := p.read(c.Context, func(tx *ledger.Tx) error {
				j, err := jobNamed(c.Context, tx, c.Args().First())
				if err != nil {
					return err
				}
				w, err = projection.Explain(c.Context, tx, j, p.now())
				return err
			})
			if err != nil {
				return err
			}
			r := p.reasons(w)
			if p.json {
				return p.printJSON(p.whyJSON(w, r))
			}
			text := render.Escape(strings.Join(r.text, " "))
			lines := []string{text}
			if p.width > 0 {
				lines = render.Wrap(text, min(p.width, 100))
			}
			_, err = p.stdout.WriteString(strings.Join(lines, "\n") + "\n")
			return err
		},
	}
}

// reasons are what why says: in words, and what the job waits for, for scripts.
type reasons struct {
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

func (p *program) reasons(w projection.Why) (r reasons) {
	j := w.Job
	switch {
	case j.State == ledger.Queued:
		p.whyQueued(w, &r)
	case j.State.Held():
		p.whyHeld(w, &r)
	default:
		p.whyEnded(w, &r)
	}
	return r
}

// when is t in full, with its distance from now.
func (p *program) when(t time.Time) string {
	return fmt.Sprintf("%s (%s)", render.Time(p.local(t)), render.Age(t, p.now()))
}

func because(reason string) string {
	if reason == "" {
		return "no reason given"
	}
	return reason
}

func (p *program) whyQueued(w projection.Why, r *reasons) {
	j, now := w.Job, p.now()
	due := !j.RunAt.After(now)
	r.say("Job %s is queued in %s: %s.", j.ID, j.Queue, p.whyBack(w))
	if w.Moved != nil {
		moved := w.Moved.Body.(*ledger.Rescheduled)
		r.say("%s rescheduled it %s: %s.", w.Moved.Actor, render.Age(w.Moved.At, now), because(moved.Reason))
	}
	if due {
		r.say("It has been ready since %s.", p.when(j.RunAt))
	} else {
		r.wait("time", "It may not run before %s.", p.when(j.RunAt))
	}
	if w.Queue.Paused {
		r.wait("queue", "The queue %s is paused: %s did that %s: %s; 'jobledger resume -q %s' ends it.", j.Queue, w.Queue.Actor, render.Age(w.Queue.Since, now), because(w.Queue.Reason), j.Queue)
	}
	fit := fitting(w)
	if len(fit) == 0 {
		r.wait("worker", "%s", noWorker(w))
	}
	if w.Ahead+w.Higher > 0 {
		text := fmt.Sprintf("%s of its lane %s before it", render.Count(w.Ahead, "job"), verbFor(w.Ahead, "comes", "come"))
		if w.Higher > 0 {
			text += fmt.Sprintf(", and %s of a higher priority %s ready", render.Count(w.Higher, "job"), verbFor(w.Higher, "is", "are"))
		}
		if due && !w.Queue.Paused && len(fit) > 0 {
			r.waitsFor = append(r.waitsFor, "turn")
		}
		r.say("%s.", strings.ToUpper(text[:1])+text[1:])
	}
	if len(fit) > 0 {
		text := fmt.Sprintf("%s may take it: %s.", render.Count(int64(len(fit)), "running worker"), workerNames(fit))
		if due && !w.Queue.Paused && w.Ahead+w.Higher == 0 {
			r.wait("worker", "It is the next in its lane; %s", text)
		} else {
			r.say("%s", text)
		}
	}
}

func verbFor(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// whyBack says what put the job into its queue.
func (p *program) whyBack(w projection.Why) string {
	j, e, now := w.Job, w.Cause, p.now()
	switch b := e.Body.(type) {
	case *ledger.Enqueued:
		text := fmt.Sprintf("%s enqueued it %s", e.Actor, render.Age(e.At, now))
		if b.RunAt.After(e.At) {
			text += " to run at " + render.Time(p.local(b.RunAt))
		}
		return text
	case *ledger.Failed:
		return fmt.Sprintf("attempt %d by %s failed %s with %s, failure %d of %d, and it is tried again after a pause of %s",
			e.Attempt, e.Worker.Name, render.Age(e.At, now), render.OrNone(b.ErrorCode), j.Failures, j.MaxAttempts, render.Briefly(b.RetryAt.Sub(e.At)))
	case *ledger.Reclaimed:
		return fmt.Sprintf("attempt %d was taken from %s %s because %s, failure %d of %d, and it is tried again after a pause of %s",
			e.Attempt, e.Worker.Name, render.Age(e.At, now), reclaimReason(b.Reason), j.Failures, j.MaxAttempts, render.Briefly(b.RetryAt.Sub(e.At)))
	case *ledger.Released:
		if b.Snooze {
			return fmt.Sprintf("the job itself asked %s to be run later (snooze %d): %s", render.Age(e.At, now), j.Snoozes, because(b.Reason))
		}
		return fmt.Sprintf("%s gave it back %s, which is no failure: %s", e.Worker.Name, render.Age(e.At, now), because(b.Reason))
	case *ledger.Retried:
		return fmt.Sprintf("%s queued it again %s: %s", e.Actor, render.Age(e.At, now), because(b.Reason))
	}
	return "it was put there " + render.Age(e.At, now)
}

func reclaimReason(reason string) string {
	if reason == ledger.MaxRuntime {
		return "it had run for longer than its max runtime"
	}
	return "its lease had run out"
}

// fitting are the live workers that would take the job.
func fitting(w projection.Why) (fit []projection.Worker) {
	for _, worker := range w.Live {
		ok, _ := projection.Fits(w.Job, worker.Version, worker.Capabilities)
		if ok && slices.Contains(worker.Queues, w.Job.Queue) {
			fit = append(fit, worker)
		}
	}
	return fit
}

// noWorker says which condition no live worker meets.
func noWorker(w projection.Why) string {
	var queues, refusals []string
	serving := 0
	for _, worker := range w.Live {
		queues = append(queues, worker.Queues...)
		if !slices.Contains(worker.Queues, w.Job.Queue) {
			continue
		}
		serving++
		if _, why := projection.Fits(w.Job, worker.Version, worker.Capabilities); !slices.Contains(refusals, why) {
			refusals = append(refusals, why)
		}
	}
	slices.Sort(queues)
	queues = slices.Compact(queues)
	switch {
	case serving > 0:
		return fmt.Sprintf("%s of the queue %s %s running, but none may take it: %s.", render.Count(int64(serving), "worker"), w.Job.Queue, verbFor(int64(serving), "is", "are"), strings.Join(refusals, "; "))
	case len(queues) > 0:
		return fmt.Sprintf("No running worker serves the queue %s; those that run serve %s.", w.Job.Queue, strings.Join(queues, ", "))
	}
	return fmt.Sprintf("No worker is known to be running; 'jobledger work -q %s -- CMD' starts one.", w.Job.Queue)
}

func workerNames(workers []projection.Worker) string {
	const most = 5
	var names []string
	for _, w := range workers[:min(most, len(workers))] {
		names = append(names, w.Name)
	}
	if more := len(workers) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (p *program) whyHeld(w projection.Why, r *reasons) {
	j, now := w.Job, p.now()
	r.waitsFor = append(r.waitsFor, "owner")
	r.say("Job %s is %s: %s (%s) has held it since %s, as attempt %d.", j.ID, j.State, j.Worker.Name, render.Process(j.Worker), p.when(j.ClaimedAt), j.Attempt)
	if j.HeartbeatAt.After(j.ClaimedAt) {
		r.say("The last heartbeat came %s.", render.Age(j.HeartbeatAt, now))
	} else {
		r.say("No heartbeat has come.")
	}
	if j.LeaseUntil.After(now) {
		r.say("Its lease ends at %s unless a heartbeat comes.", p.when(j.LeaseUntil))
	} else {
		r.say("Its lease ran out at %s and nobody has swept: the owner keeps it until somebody does; 'jobledger sweep' or any worker would.", p.when(j.LeaseUntil))
	}
	if !j.EndBy.IsZero() {
		r.say("Its max runtime ends at %s.", p.when(j.EndBy))
	}
}

func (p *program) whyEnded(w projection.Why, r *reasons) {
	j, e := w.Job, w.Cause
	at := p.when(e.At)
	switch b := e.Body.(type) {
	case *ledger.Succeeded:
		r.say("Job %s succeeded at %s: attempt %d by %s took %s.", j.ID, at, e.Attempt, e.Worker.Name, render.Briefly(e.At.Sub(j.ClaimedAt)))
	case *ledger.Cancelled:
		r.say("Job %s is cancelled: %s did that at %s: %s.", j.ID, e.Actor, at, because(b.Reason))
		if e.Attempt > 0 {
			r.say("Attempt %d by %s was under way.", e.Attempt, e.Worker.Name)
		}
	case *ledger.Failed:
		r.say("Job %s failed for good at %s: attempt %d by %s ended with %s, failure %d of %d.", j.ID, at, e.Attempt, e.Worker.Name, failure(b), j.Failures, j.MaxAttempts)
		if j.Failures < j.MaxAttempts {
			r.say("It was not to be tried again.")
		}
		r.retryable(j)
	case *ledger.Reclaimed:
		r.say("Job %s failed for good at %s: attempt %d was taken from %s because %s, failure %d of %d.", j.ID, at, e.Attempt, e.Worker.Name, reclaimReason(b.Reason), j.Failures, j.MaxAttempts)
		r.retryable(j)
	default:
		r.say("Job %s is %s since %s.", j.ID, j.State, at)
	}
}

// retryable says how a job that failed for good can run again.
func (r *reasons) retryable(j projection.Job) {
	if j.Erased {
		r.say("Its payload was erased, so it cannot be retried.")
		return
	}
	r.say("'jobledger retry %s' queues it again.", j.ID)
}

// failure is what an attempt ended with.
func failure(b *ledger.Failed) string {
	parts := []string{"error " + render.OrNone(b.ErrorCode)}
	if b.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *b.ExitCode))
	}
	if b.Signal != "" {
		parts = append(parts, "killed by signal "+b.Signal)
	}
	return strings.Join(parts, ", ")
}

type whyJSON struct {
	Job         ledger.JobID `json:"job"`
	State       string       `json:"state"`
	Queue       string       `json:"queue"`
	Why         string       `json:"why"`
	WaitsFor    []string     `json:"waits_for"` // time, queue, worker, turn, owner; empty: nothing any more
	RunAt       *string      `json:"run_at"`
	Cause       ledger.Event `json:"cause"` // the event that brought it into its state
	Failures    int          `json:"failures"`
	MaxAttempts int          `json:"max_attempts"`
	Worker      *string      `json:"worker"`
	LeaseUntil  *string      `json:"lease_expires_at"`
	PausedSince *string      `json:"paused_since"`
	PausedBy    *string      `json:"paused_by"`
	PausedWhy   *string      `json:"paused_reason"`
	Ahead       *int64       `json:"ahead_in_lane"` // null unless queued; likewise:
	Higher      *int64       `json:"ready_with_higher_priority"`
	Fitting     []string     `json:"workers_that_may_take_it"`
}

func (p *program) whyJSON(w projection.Why, r reasons) whyJSON {
	j := w.Job
	out := whyJSON{Job: j.ID, State: j.State.String(), Queue: j.Queue, Why: strings.Join(r.text, " "), WaitsFor: append([]string{}, r.waitsFor...),
		RunAt: render.TimeOrNull(j.RunAt), Cause: w.Cause, Failures: j.Failures, MaxAttempts: j.MaxAttempts, Worker: render.TextOrNull(j.Worker.Name),
		LeaseUntil: render.TimeOrNull(j.LeaseUntil)}
	if j.State == ledger.Queued {
		out.Ahead, out.Higher, out.Fitting = &w.Ahead, &w.Higher, []string{}
		for _, worker := range fitting(w) {
			out.Fitting = append(out.Fitting, worker.Name)
		}
	}
	if w.Queue.Paused {
		out.PausedSince, out.PausedBy, out.PausedWhy = render.TimeOrNull(w.Queue.Since), render.TextOrNull(w.Queue.Actor), render.TextOrNull(w.Queue.Reason)
	}
	return out
}
