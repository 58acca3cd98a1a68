package state

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func (r *reasons) held() {
	j, now := r.Job, r.now
	r.waitsFor = append(r.waitsFor, "owner")
	r.say("Job %s is %s: %s (%s) has held it since %s, as attempt %d.", j.ID, j.State, j.Worker.Name,
		words.Process(j.Worker), r.when(j.ClaimedAt), j.Attempt)
	if j.HeartbeatAt.After(j.ClaimedAt) {
		r.say("The last heartbeat came %s.", words.AgeOrOn(j.HeartbeatAt, now))
	} else {
		r.say("No heartbeat has come.")
	}
	if j.LeaseUntil.After(now) {
		r.say("Its lease ends at %s unless a heartbeat comes.", r.when(j.LeaseUntil))
	} else {
		r.say("Its lease ran out at %s and no process has swept: the owner keeps it until one does%s.",
			r.when(j.LeaseUntil), r.hint("; 'jobledger sweep' or any worker would"))
	}
	if !j.EndBy.IsZero() {
		r.say("Its max runtime %s at %s.", ends(j.EndBy, now), r.when(j.EndBy))
	}
	if j.Note != "" {
		r.say("Its owner says: %s.", strings.TrimSuffix(words.Shorten(j.Note), "."))
	}
	if j.CannotEnd != "" {
		r.say("It cannot be ended: %s. Its worker waits for the end of that process.", j.CannotEnd)
	}
}

// ends is the verb for an end at this time.
func ends(at, now time.Time) string {
	if at.After(now) {
		return "ends"
	}
	return "ended"
}

func (r *reasons) ended() {
	j, e := r.Job, r.Cause
	at := r.when(e.At)
	switch b := e.Body.(type) {
	case *event.Succeeded:
		late := ""
		if b.AfterMaxRuntime {
			late = ", longer than its max runtime"
		}
		r.say("Job %s succeeded at %s: attempt %d by %s took %s%s.", j.ID, at, e.Attempt, e.Worker.Name,
			words.Briefly(e.At.Sub(j.ClaimedAt)), late)
	case *event.Cancelled:
		if b.Because != "" {
			r.say("Job %s is cancelled since %s: it waits for %s, which has ended in another way. %s", j.ID, at,
				b.Because,
				r.hint("'jobledger retry %s' queues that again, and this one waits once more.", b.Because))
			return
		}
		r.say("Job %s is cancelled: %s did that at %s: %s.", j.ID, e.Actor, at, words.ReasonOrNone(b.Reason))
		if e.Attempt > 0 {
			r.say("Attempt %d by %s was under way.", e.Attempt, e.Worker.Name)
		}
		r.lastCommand(true)
	case *event.Failed:
		r.say("Job %s failed for good at %s: attempt %d by %s ended with %s, failure %d of %d.", j.ID, at,
			e.Attempt, e.Worker.Name, failure(b), j.Failures, j.MaxAttempts)
		if j.Failures < j.MaxAttempts {
			r.say("It was not to be tried again.")
		}
		r.retryable(j)
	case *event.Reclaimed:
		r.say("Job %s failed for good at %s: attempt %d was taken from %s because %s, failure %d of %d.", j.ID, at,
			e.Attempt, e.Worker.Name, reclaimReason(b.Reason), j.Failures, j.MaxAttempts)
		r.lastCommand(true)
		r.retryable(j)
	default:
		r.say("Job %s is %s since %s.", j.ID, j.State, at)
	}
}

// lastCommand says that the command of the last claim may still run, though the claim was lost, and that a
// retry that is not due waits for its end.
func (r *reasons) lastCommand(due bool) {
	c := r.Lost
	if c == nil {
		return
	}
	text := fmt.Sprintf("The command of attempt %d by %s (%s), which was %s %s, may still run until %s",
		c.Attempt, c.Worker.Name, words.Process(c.Worker), c.Ending, words.AgeOrOn(c.EndedAt, r.now),
		r.when(c.Until))
	if c.CannotEnd != "" {
		text += "; it cannot be ended, as " + c.CannotEnd + ", and holds the rest while it lives"
	}
	retried, ok := r.Cause.Body.(*event.Retried)
	switch {
	case r.Job.State.Final():
		r.say("%s: a retry waits for its end%s.", text, r.hint(", unless it is given --now"))
	case ok && r.Moved == nil && !due && !retried.RunAt.IsZero():
		r.wait("command", "%s: the job waits for its end%s.", text,
			r.hint("; 'jobledger reschedule %s --delay 0s' does not", r.Job.ID))
	default:
		r.say("%s.", text)
	}
}

// retryable says how a job that failed for good can run again.
func (r *reasons) retryable(j projection.Job) {
	if j.Erased {
		r.say("Its payload was erased, so it cannot be retried.")
		return
	}
	if !r.past {
		r.say("'jobledger retry %s' queues it again.", j.ID)
	}
}

// failure is what an attempt ended with.
func failure(b *event.Failed) string {
	parts := []string{words.ErrorText(b.ErrorCode)}
	if b.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *b.ExitCode))
	}
	if b.Signal != "" {
		parts = append(parts, "killed by signal "+b.Signal)
	}
	return strings.Join(parts, ", ")
}
