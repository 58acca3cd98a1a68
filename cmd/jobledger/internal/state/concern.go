package state

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// Level says how urgent a concern is.
type Level = verdict.Level

// The levels.
const (
	Info    = verdict.Note    // for information
	Warning = verdict.Warning // may need attention
	Problem = verdict.Trouble // needs attention
)

// Concern is something that may need attention, in words.
type Concern struct {
	Level Level
	Queue string // that it is about; "": it is about workers, or about a schedule

	Schedule string // that it is about; "": none
	Text     string // one sentence without its full stop
	Code     string // of the finding of doctor that says the same; "": there is none
	Remedy   string // the words of the command that helps, without the program's name; "": none is known
}

// Line is the text of c, preceded by its subject.
func (c Concern) Line() string {
	if c.Queue == "" {
		return c.Text
	}
	return c.Queue + ": " + c.Text
}

// MostLines is how many concerns are listed where people look first.
const MostLines = 8

// More says how many of so many concerns are not listed; "": all are.
func More(n int) string {
	if n <= MostLines {
		return ""
	}
	return fmt.Sprintf("and %d more: 'jobledger doctor' lists all", n-MostLines)
}

// Concerns returns what in q alone may need attention at now, and what is good to know.
func Concerns(q status.Queue, now time.Time) (found []Concern) {
	for _, p := range verdict.OfQueue(q, now) {
		found = append(found, Say(p, now))
	}
	return append(found, Notes(q, now)...)
}

// Notes returns remarks about q that are not problems.
func Notes(q status.Queue, now time.Time) (found []Concern) {
	if q.Retrying > 0 {
		found = append(found, Concern{Queue: q.Name,
			Text: words.Count(q.Retrying, "queued job") + " failed before and will be tried again"})
	}
	if !q.NextRunAt.IsZero() {
		found = append(found, Concern{Queue: q.Name,
			Text: "the next scheduled job runs " + words.AgeOrOn(q.NextRunAt, now)})
	}
	return found
}

// Say puts p into words at now: how many, since when, and why.
func Say(p verdict.Problem, now time.Time) Concern {
	c := Concern{Level: p.Level, Queue: p.Queue, Code: string(p.Code)}
	queue := words.QuoteShell(p.Queue)
	since := func() string { return words.AgeOrOn(p.Since, now) }
	switch p.Code {
	case verdict.Paused:
		c.Text, c.Remedy = sayPaused(p, now), "resume -q "+queue
	case verdict.Leases:
		then := "not swept yet"
		if p.Level > Info {
			then, c.Remedy = "and no process has swept; is a worker running, or 'jobledger sweep'?", "sweep"
		} else {
			c.Code = ""
		}
		c.Text = fmt.Sprintf("%s ran out, the first %s, %s", words.Count(p.Jobs, "lease"), since(), then)
	case verdict.Stranded:
		c.Text = sayStranded(p, now)
		c.Remedy = WorkLine(p.Queue, p.Stranded.Version, p.Stranded.Requires, "COMMAND")
	case verdict.Silent:
		c.Text, c.Remedy = saySilent(p, now), "workers"
	case verdict.Failing:
		c.Text, c.Remedy = sayFailing(p, now), "report failures -q "+queue
	case verdict.Version:
		c.Text = fmt.Sprintf("%s of the attempts failed since %s came at %s (%d of %d), %s with %s before%s",
			percent(p.Failed, p.Attempts), versionName(p.To), minute(p.Since, now), p.Failed, p.Attempts,
			shareText(p.Before), versionName(p.From), sayCause(p.Cause))
		c.Remedy = "report failures -q " + queue
	case verdict.GaveUp:
		c.Text = fmt.Sprintf("%s failed for good within the hour, since %s%s", words.Count(p.Jobs, "job"),
			minute(p.Since, now), sayCause(p.Cause))
		c.Remedy = "list -q " + queue + " -s failed"
	case verdict.Lost:
		c.Text = fmt.Sprintf("%s taken back from %s, whose leases ran out, since %s",
			words.Count(p.Jobs, "job")+words.Plural(p.Jobs, " was", " were"), namesOf(p.Cause), minute(p.Since, now))
		c.Remedy = "workers"
	case verdict.Behind:
		c.Text, c.Remedy = sayBehind(p, now)
	case verdict.Inbox:
		c.Text, c.Remedy = sayInbox(p, now)
	case verdict.Schedule:
		c.Schedule = p.Schedule.Spec.Name
		c.Text, c.Remedy = saySchedule(p, now)
	default:
		c.Text = sayRest(p, now)
		if len(p.Commands) == 0 {
			c.Remedy = "resume -q " + queue
		}
	}
	return c
}

func sayPaused(p verdict.Problem, now time.Time) string {
	wait := ""
	if p.Jobs > 0 {
		wait = fmt.Sprintf(" (%s)", words.Count(p.Jobs, "job")+words.Plural(p.Jobs, " waits", " wait"))
	}
	return fmt.Sprintf("paused %s by %s%s: %s", words.AgeOrOn(p.Since, now), p.Pause.Actor, wait,
		words.ReasonOrNone(p.Pause.Reason))
}

func sayStranded(p verdict.Problem, now time.Time) string {
	s := p.Stranded
	reason := "no worker serves the queue"
	if len(s.Serving) > 0 {
		reason = "none of its workers (" + words.WorkerNames(s.Serving) + ") may take " +
			words.Plural(s.Jobs, "it", "them")
	}
	if gone := Gone(s.Service, now); gone != "" {
		reason += "; " + gone
	}
	return fmt.Sprintf("%s ready, the first for %s, and %s", words.Count(s.Jobs, "job"),
		words.Roughly(now.Sub(s.Since)), reason)
}

func saySilent(p verdict.Problem, now time.Time) string {
	n, w, held := int64(len(p.Workers)), p.Workers[0], "no job"
	if p.Jobs > 0 {
		held = words.Count(p.Jobs, "job")
		var until time.Time
		for _, w := range p.Workers {
			for _, j := range w.Jobs {
				if until.IsZero() || j.LeaseUntil.Before(until) {
					until = j.LeaseUntil
				}
			}
		}
		if until.After(now) {
			held += " (the first lease ends " + words.AgeOrOn(until, now) + ")"
		}
	}
	return fmt.Sprintf("%s %s silent, holding %s: %s; the first, %s, was seen %s", words.Count(n, "worker"),
		words.Plural(n, "is", "are"), held, words.WorkerNames(p.Workers), words.Process(w.Worker),
		words.AgeOrOn(w.SeenAt, now))
}

func sayFailing(p verdict.Problem, now time.Time) string {
	text := fmt.Sprintf("%s of the attempts of %s failed (%d of %d), since %s", percent(p.Failed, p.Attempts),
		words.Roughly(time.Duration(p.Minutes)*time.Minute), p.Failed, p.Attempts, minute(p.Since, now))
	if p.Before >= 0 {
		text += ", " + shareText(p.Before) + " before"
	}
	return text + sayCause(p.Cause)
}

// minute is t to the minute, as the rules count: today without its date.
func minute(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("01-02 15:04")
}

// sayCause is the commonest failure, to follow what it is the cause of.
func sayCause(c *verdict.Cause) string {
	if c == nil {
		return ""
	}
	text := ": " + words.FailureText(c.Code, projection.Exit{Code: c.Exit})
	if c.Detail != "" {
		text += ", " + c.Detail
	}
	return text + ", " + words.Count(c.Jobs, "job") + " met it"
}

func namesOf(c *verdict.Cause) string {
	if c == nil || len(c.Workers) == 0 {
		return "a worker"
	}
	return strings.Join(c.Workers, ", ")
}

func sayBehind(p verdict.Problem, now time.Time) (text, remedy string) {
	if p.Idle && !p.Limit {
		return "jobs are ready, and no worker holds any; is one running for this queue?",
			WorkArgs(p.Queue, "", nil) + " -- COMMAND"
	}
	text = fmt.Sprintf("%s ready, the first for %s", words.Count(p.Jobs, "job"), words.Roughly(now.Sub(p.Since)))
	if p.Normal > 0 {
		text += ", normally " + words.Roughly(p.Normal.Round(time.Second)) + " at most"
	}
	switch {
	case p.Limit:
		return text + ": a limit is reached", "queue limit " + words.QuoteShell(p.Queue)
	case p.ClearIn > 0:
		return text + "; at this rate they are claimed in " + words.Roughly(p.ClearIn), ""
	}
	return text + "; more come than are claimed", WorkArgs(p.Queue, "", nil) + " -- COMMAND"
}

func sayInbox(p verdict.Problem, now time.Time) (text, remedy string) {
	rows := words.Count(p.Jobs, "row") + " of the inbox"
	if p.Refused.N != 0 {
		return fmt.Sprintf("%s %s refused, the first %s: job %s: %s", rows, words.Plural(p.Jobs, "was", "were"),
			words.AgeOrOn(p.Since, now), p.Refused.ID, p.Refused.Why), "inbox list --refused"
	}
	text = fmt.Sprintf("%s %s, the first for %s", rows, words.Plural(p.Jobs, "waits", "wait"),
		words.Roughly(now.Sub(p.Since)))
	if p.Level == Info {
		return text, ""
	}
	return text + ": no process makes jobs of them; is a worker running, or 'jobledger sweep'?", "sweep"
}

func saySchedule(p verdict.Problem, now time.Time) (text, remedy string) {
	name := p.Schedule.Spec.Name
	text = "the schedule " + name + ": "
	switch {
	case p.LastJob.N != 0:
		return text + fmt.Sprintf("its last job, %s in %s, failed for good %s: %s", p.LastJob.ID, p.LastJob.Queue,
			words.AgeOrOn(p.Since, now), p.LastJob.ErrorCode), "retry " + string(p.LastJob.ID)
	case p.Skipped > 0:
		return text + fmt.Sprintf("its last %s skipped, the first %s", words.Count(p.Skipped, "tick")+
			words.Plural(p.Skipped, " was", " were"), words.AgeOrOn(p.Since, now)), "schedule show " + name
	}
	return text + fmt.Sprintf("due %s, and no process ticks; is a worker running, or 'jobledger sweep'?",
		words.AgeOrOn(p.Since, now)), "sweep"
}

// sayRest is for what has no code.
func sayRest(p verdict.Problem, now time.Time) string {
	if len(p.Commands) == 0 {
		return sayPaused(p, now)
	}
	first := p.Commands[0]
	return fmt.Sprintf(
		"%s may still run although %s lost, the first of job %s: attempt %d by %s (%s), %s %s, until %s",
		words.Count(p.Jobs, "command"), words.Plural(p.Jobs, "its claim was", "their claims were"), first.Job,
		first.Attempt, first.Worker.Name, words.Process(first.Worker), first.Ending,
		words.AgeOrOn(first.EndedAt, now), words.Time(first.Until.In(now.Location())))
}

func percent(part, all int64) string { return shareText(float64(part) / float64(max(all, 1))) }

// shareText is a share in percent, small ones to a tenth.
func shareText(share float64) string {
	if share > 0 && share < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func versionName(version string) string {
	if version == "" {
		return "no version"
	}
	return version
}
