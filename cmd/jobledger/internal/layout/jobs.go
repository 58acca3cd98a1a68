package layout

import (
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Jobs is a table of jobs, to which [AddJob] adds; with past also of what has become of them.
func Jobs(past bool) *render.Table {
	t := &render.Table{Columns: []render.Column{{Title: "JOB"}, {Title: "STATE", State: true},
		{Title: "QUEUE", Least: 8},
		{Title: "FAILS", Drop: 4}, {Title: "WHEN", Drop: 2}, {Title: "WORKER", Drop: 5},
		{Title: "KEY", Least: 8, Drop: 1},
		{Title: "ERROR", Drop: 3}}}
	if past {
		t.Columns = slices.Insert(t.Columns, 2, render.Column{Title: "NOW", State: true})
	}
	return t
}

// AddJob adds the line of a job at now, whose last failure ended with exit.
func AddJob(t *render.Table, j projection.Then, exit projection.Exit, past bool, now time.Time) {
	cells := []string{string(j.ID), j.State.String(), j.Queue, fmt.Sprintf("%d/%d", j.Failures, j.MaxAttempts),
		sinceWhen(j.Job, now), j.Worker.Name, j.Key,
		render.FailureText(j.ErrorCode, exit)}
	if past {
		cells = slices.Insert(cells, 2, j.Now.String())
	}
	t.Add(cells...)
}

// ListedJobJSON is a job of a list for programs.
type ListedJobJSON struct {
	render.JobJSON
	render.ExitJSON
	*render.StateNow
}

// JobJSON is a job for programs, with past also with what has become of it.
func JobJSON(j projection.Then, exit projection.Exit, past bool) ListedJobJSON {
	out := ListedJobJSON{render.ToJSON(j.Job), render.ToExitJSON(exit), nil}
	if past {
		out.StateNow = &render.StateNow{StateNow: j.Now.String()}
	}
	return out
}

// sinceWhen is the time that matters most for a job in its state; a date where that is not recent.
func sinceWhen(j projection.Job, now time.Time) string {
	switch {
	case j.State == event.Queued && j.RunAt.After(now):
		return render.AgeOrDate(j.RunAt, now)
	case j.State == event.Blocked:
		return ""
	case j.State == event.Queued:
		return "ready " + sinceOrFor("", j.RunAt, now)
	case j.State.Held() && j.LeaseUntil.Before(now):
		return "expired " + render.AgeOrDate(j.LeaseUntil, now)
	case j.State.Held():
		text := sinceOrFor("for ", j.ClaimedAt, now)
		if j.Progress != nil {
			text += fmt.Sprintf(", %.0f%%", 100**j.Progress)
		}
		return text
	}
	return render.AgeOrDate(j.FinishedAt, now)
}

// sinceOrFor is how long t has been, after the word for that, or since when.
func sinceOrFor(word string, t, now time.Time) string {
	if render.Recent(t, now) {
		return word + render.Since(t, now)
	}
	return "since " + render.Since(t, now)
}
