package print

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Jobs is a table of jobs, to which [AddJob] adds; with past it also has their states now.
func Jobs(past bool) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "JOB"}, {Title: "STATE", State: true},
		{Title: "QUEUE", Least: 8},
		{Title: "FAILS", Drop: 4}, {Title: "WHEN", Drop: 2}, {Title: "WORKER", Drop: 5},
		{Title: "KEY", Least: 8, Drop: 1},
		{Title: "ERROR", Drop: 3}}}
	if past {
		t.Columns = slices.Insert(t.Columns, 2, words.Column{Title: "NOW", State: true})
	}
	return t
}

// AddJob adds the line of a job at now, whose last failure ended with exit.
func AddJob(t *words.Table, j projection.Then, exit projection.Exit, past bool, now time.Time) {
	cells := []string{string(j.ID), j.State.String(), j.Queue, fmt.Sprintf("%d/%d", j.Failures, j.MaxAttempts),
		sinceWhen(j.Job, now), j.Worker.Name, j.Key,
		words.FailureText(j.ErrorCode, exit)}
	if past {
		cells = slices.Insert(cells, 2, j.Now.String())
	}
	t.Add(cells...)
}

// Numbered is the table of jobs on a terminal, with their numbers in place of their ids, and with what they
// are; [AddNumbered] adds to it.
func Numbered(past bool) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "NO", Right: true}, {Title: "STATE", State: true},
		{Title: "QUEUE", Least: 8}, {Title: "TOOK", Right: true, Drop: 4}, {Title: "FAILS", Drop: 5},
		{Title: "ERROR", Drop: 3}, {Title: "WHAT", Least: 12}, {Title: "WHEN", Drop: 2},
		{Title: "WORKER", Drop: 6}}}
	if past {
		t.Columns = slices.Insert(t.Columns, 2, words.Column{Title: "NOW", State: true})
	}
	return t
}

// AddNumbered is [AddJob] for the table [Numbered]; what is of the job.
func AddNumbered(t *words.Table, j projection.Then, exit projection.Exit, what string, past bool,
	now time.Time) {
	took := ""
	switch {
	case j.ClaimedAt.IsZero():
	case j.State.Held():
		took = words.Briefly(now.Sub(j.ClaimedAt))
	default:
		took = words.Briefly(j.FinishedAt.Sub(j.ClaimedAt))
	}
	cells := []string{strconv.FormatInt(j.N, 10), j.State.String(), j.Queue, took,
		fmt.Sprintf("%d/%d", j.Failures, j.MaxAttempts), words.FailureText(j.ErrorCode, exit), what,
		sinceWhen(j.Job, now), j.Worker.Name}
	if past {
		cells = slices.Insert(cells, 2, j.Now.String())
	}
	t.Add(cells...)
}

// ListedJobJSON is a job of a list for programs.
type ListedJobJSON struct {
	words.JobJSON
	words.ExitJSON
	*words.StateNow
}

// JobJSON is the JSON form of a job, with past also its state now.
func JobJSON(j projection.Then, exit projection.Exit, past bool) ListedJobJSON {
	out := ListedJobJSON{words.ToJSON(j.Job), words.ToExitJSON(exit), nil}
	if past {
		out.StateNow = &words.StateNow{StateNow: j.Now.String()}
	}
	return out
}

// sinceWhen is the time that matters most for a job in its state; a date where that is not recent.
func sinceWhen(j projection.Job, now time.Time) string {
	switch {
	case j.State == event.Queued && j.RunAt.After(now):
		return words.AgeOrDate(j.RunAt, now)
	case j.State == event.Blocked:
		return ""
	case j.State == event.Queued:
		return "ready " + sinceOrFor("", j.RunAt, now)
	case j.State.Held() && j.LeaseUntil.Before(now):
		return "expired " + words.AgeOrDate(j.LeaseUntil, now)
	case j.State.Held():
		text := sinceOrFor("for ", j.ClaimedAt, now)
		if j.Progress != nil {
			text += fmt.Sprintf(", %.0f%%", 100**j.Progress)
		}
		return text
	}
	return words.AgeOrDate(j.FinishedAt, now)
}

// sinceOrFor is how long t has been, after the word for that, or since when.
func sinceOrFor(word string, t, now time.Time) string {
	if words.Recent(t, now) {
		return word + words.Since(t, now)
	}
	return "since " + words.Since(t, now)
}
