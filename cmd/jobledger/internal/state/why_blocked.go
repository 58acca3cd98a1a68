package state

import (
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// maxNamed is how many jobs that a job waits for an explanation names.
const maxNamed = 5

// blocked says what the job waits for.
func (r *reasons) blocked() {
	j := r.Job
	r.say("Job %s is blocked in %s: %s.", j.ID, j.Queue, r.cause())
	var names []string
	for _, w := range r.Waits {
		if w.Hold {
			r.wait("unblock", "It is held%s.", r.hint("; 'jobledger unblock %s' lifts that", j.ID))
			continue
		}
		names = append(names, fmt.Sprintf("%s%s", waitsFor(w.On, w.Job), doing(w.Job)))
	}
	if len(names) == 0 {
		return
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %s", words.Count(int64(more), "further job"))
	}
	r.wait("job", "It waits for %s.", text)
}

func waitsFor(on event.Ending, j projection.Job) string {
	switch on {
	case event.OnFailed:
		return fmt.Sprintf("the failure of %s", j.ID)
	case event.OnFinished:
		return fmt.Sprintf("the end of %s", j.ID)
	}
	return fmt.Sprintf("the success of %s", j.ID)
}

// doing is the state of a job, with its owner.
func doing(j projection.Job) string {
	if j.State.Held() {
		return fmt.Sprintf(" (%s by %s)", j.State, j.Worker.Name)
	}
	return fmt.Sprintf(" (%s)", j.State)
}
