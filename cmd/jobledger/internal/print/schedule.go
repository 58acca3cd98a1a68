package print

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/argv"
	"jobledger/commands/cron"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// Schedules is a table of schedules as of now.
func Schedules(list []schedules.Schedule, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "SCHEDULE", Least: 8}, {Title: "QUEUE", Least: 8},
		{Title: "TIMES", Least: 12}, {Title: "NEXT"}, {Title: "IN", Right: true}, {Title: "LAST", Drop: 1},
		{Title: "WHAT", Least: 8, Drop: 2}}}
	for _, s := range list {
		next, left, last := "-", "", "-"
		switch {
		case s.Paused:
			left = "paused"
		case !s.Next.IsZero():
			next, left = words.Time(s.Next.In(now.Location())), words.Roughly(max(0, s.Next.Sub(now)))
		}
		if !s.LastTick.IsZero() {
			last = words.Time(s.LastTick.In(now.Location()))
		}
		t.Add(s.Spec.Name, s.Spec.Queue, words.TimesText(s.Spec), next, left, last,
			state.WhatTicks(s.Spec))
	}
	return t
}

// SpecJSON is what is set of a schedule: what apply reads, and list prints. Durations are texts.
type SpecJSON struct {
	Name        string            `json:"name"`
	Queue       string            `json:"queue"`
	Cron        string            `json:"cron,omitempty"`
	Zone        string            `json:"zone,omitempty"`
	Every       string            `json:"every,omitempty"`
	From        string            `json:"from,omitempty"`
	Jitter      string            `json:"jitter,omitempty"`
	CatchUp     string            `json:"catch_up,omitempty"`
	Within      string            `json:"within,omitempty"`
	Overlap     string            `json:"overlap,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	MaxRuntime  string            `json:"max_runtime,omitempty"`
	Version     string            `json:"version,omitempty"`
	Requires    []string          `json:"requires,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	// a string for what it says, other JSON for its text
	Payload json.RawMessage `json:"payload,omitempty"`
	// what the payload is: argv is a command; left out: what the workers make of it
	Form string `json:"form,omitempty" openapi:"enum=argv"`
	// of the jobs; groups of a queue are served in rotation
	Group   string `json:"group,omitempty"`
	Backoff string `json:"backoff,omitempty"` // such as "min 1s, max 1h, factor 2"; left out: that of the queue
}

// ScheduleJSON is a schedule for programs.
type ScheduleJSON struct {
	SpecJSON
	Paused   bool     `json:"paused"`
	Next     *string  `json:"next" openapi:"format=date-time"`      // the next tick; null: none
	LastTick *string  `json:"last_tick" openapi:"format=date-time"` // the last that made a job
	LastJob  *string  `json:"last_job"`                             // an operator's too
	Since    *string  `json:"since"`                                // of what set, paused or resumed it last
	Actor    *string  `json:"actor"`                                // of that
	Reason   *string  `json:"reason"`                               // of that
	Upcoming []string `json:"upcoming,omitempty"`                   // the next ticks, where they were asked for
	// the command that its jobs carry, as a line for the shell; left out: they carry none
	Command string `json:"command,omitempty"`
	// after a change: added, changed, removed or unchanged
	Done string  `json:"done,omitempty"`
	AsOf *string `json:"as_of,omitempty"`
}

// NewScheduleJSON is s, whose last job has the id lastJob, for programs.
func NewScheduleJSON(s schedules.Schedule, lastJob event.JobID) ScheduleJSON {
	spec := s.Spec
	length := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	from := ""
	if !spec.From.IsZero() {
		from = spec.From.UTC().Format(time.RFC3339)
	}
	var payload json.RawMessage
	if spec.Payload != "" {
		payload, _ = json.Marshal(spec.Payload) // a string never fails
	}
	command := ""
	if form, err := argv.Decode([]byte(spec.Payload)); err == nil && spec.Form == event.FormArgv {
		command = words.CommandLine(form.Argv)
	}
	return ScheduleJSON{Command: command, SpecJSON: SpecJSON{Name: spec.Name, Queue: spec.Queue,
		Cron: spec.Cron, Zone: spec.Zone,
		Every: length(spec.Every), From: from, Jitter: length(spec.Jitter), CatchUp: spec.CatchUp,
		Within: length(spec.Within), Overlap: spec.Overlap, Priority: spec.Priority,
		MaxAttempts: spec.MaxAttempts, MaxRuntime: length(spec.MaxRuntime), Version: spec.Version,
		Requires: spec.Requires, Tags: spec.Tags, Payload: payload, Form: spec.Form,
		Group: spec.Group, Backoff: backoffText(spec.Backoff)},
		Paused: s.Paused, Next: words.TimeOrNull(s.Next), LastTick: words.TimeOrNull(s.LastTick),
		LastJob: words.TextOrNull(string(lastJob)), Since: words.TimeOrNull(s.Since),
		Actor: words.TextOrNull(s.Actor), Reason: words.TextOrNull(s.Reason)}
}

// WithoutBodies is s for those who may not see payloads.
func (s ScheduleJSON) WithoutBodies() ScheduleJSON {
	s.Payload, s.Command = nil, ""
	return s
}

// backoffText is b as a schedule has it; "" for that of its queue.
func backoffText(b event.Backoff) string {
	if b == (event.Backoff{}) {
		return ""
	}
	return words.BackoffText(b)
}

// ScheduleZone is the zone of a schedule: its own, or, for one that ticks by a period, the zone in which
// times are shown.
func ScheduleZone(spec event.ScheduleSet, shown *time.Location) *time.Location {
	if zone, err := cron.Zone(spec.Zone); err == nil && spec.Cron != "" {
		return zone
	}
	return shown
}

// Schedule is a schedule for people: its last job, and the ticks that come next.
func Schedule(s schedules.Schedule, lastJob string, upcoming []time.Time, now time.Time) (pairs [][2]string) {
	add := func(name, value string) {
		if value != "" {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	spec := s.Spec
	add("schedule", spec.Name)
	add("queue", spec.Queue)
	add("times", words.TimesText(spec))
	add("jitter", words.DurationIfAny(spec.Jitter))
	catchUp := spec.CatchUp
	if spec.Within > 0 {
		catchUp += ", within " + words.Duration(spec.Within)
	}
	add("catch-up", catchUp)
	add("overlap", spec.Overlap)
	add("group", spec.Group)
	add("backoff", backoffText(spec.Backoff))
	if carried := Carried(spec.Form, []byte(spec.Payload)); carried != nil {
		pairs = append(pairs, carried...)
	} else {
		add("payload", spec.Payload)
	}
	state := "on"
	if s.Paused {
		state = "paused"
	}
	add("state", state+", since "+words.Time(s.Since.In(now.Location()))+" by "+s.Actor)
	add("reason", s.Reason)
	if !s.LastTick.IsZero() {
		add("last tick", words.Time(s.LastTick.In(now.Location())))
	}
	add("last job", lastJob)
	zone := ScheduleZone(spec, now.Location())
	for _, t := range upcoming {
		add("next", words.Time(t.In(zone)))
	}
	return pairs
}

// TickJSON is the JSON form of the outcome of a tick, or of several in a row that made no job for the same
// reason.
type TickJSON struct {
	Tick string `json:"tick" openapi:"format=date-time"` // the first of several
	// the last of several that made no job for one reason
	To    string `json:"to" openapi:"format=date-time"`
	Count int64  `json:"count"` // how many they are
	Pos   int64  `json:"pos"`   // of the event
	// at_once, retried, failed, cancelled, running, waiting or skipped
	Outcome string  `json:"outcome" openapi:"enum=at_once,retried,failed,cancelled,running,waiting,skipped"`
	Job     *string `json:"job"`   // that it made; null: none
	State   *string `json:"state"` // of the job
	Why     *string `json:"why"`   // it made no job: missed, late, too_old, too_many, overlap or refused
	Detail  *string `json:"detail"`
}

// NewTickJSON is t for programs.
func NewTickJSON(t schedules.Tick) TickJSON {
	out := TickJSON{Tick: event.FormatTime(t.At), To: event.FormatTime(t.To), Count: t.Count, Pos: t.Pos,
		Outcome: TickOutcome(t), Job: words.TextOrNull(string(t.Job.ID)), Why: words.TextOrNull(t.Why),
		Detail: words.TextOrNull(t.Detail)}
	if t.Why == "" {
		out.State = words.TextOrNull(t.Job.State.String())
	}
	return out
}

// TickOutcomes are the possible outcomes of a tick, with their names.
var TickOutcomes = [][2]string{{"at_once", "succeeded at once"}, {"retried", "succeeded after a retry"},
	{"failed", "failed for good"}, {"cancelled", "cancelled"}, {"running", "running"}, {"waiting", "waiting"},
	{"skipped", "skipped"}}

// TickOutcome is the outcome of t, one of TickOutcomes.
func TickOutcome(t schedules.Tick) string {
	switch j := t.Job; {
	case t.Why != "":
		return "skipped"
	case j.State == event.SucceededState && j.Attempt > 1:
		return "retried"
	case j.State == event.SucceededState:
		return "at_once"
	case j.State == event.FailedState:
		return "failed"
	case j.State == event.CancelledState:
		return "cancelled"
	case j.State == event.Running || j.State == event.ClaimedState:
		return "running"
	}
	return "waiting"
}

// Ticks is a table of what became of ticks, at now.
func Ticks(ticks []schedules.Tick, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "TICK"}, {Title: "OUTCOME"}, {Title: "JOB"},
		{Title: "ATTEMPTS", Right: true, Drop: 2}, {Title: "WHY", Least: 12, Drop: 1}}}
	for _, one := range ticks {
		attempts, job := "-", "-"
		if one.Why == "" {
			attempts, job = fmt.Sprint(one.Job.Attempt), string(one.Job.ID)
		}
		t.Add(words.Time(one.At.In(now.Location())), TickText(one), job, attempts, TickWhy(one, now.Location()))
	}
	return t
}

// TickText is what became of t, in a word or some.
func TickText(t schedules.Tick) string {
	outcome := TickOutcome(t)
	i := slices.IndexFunc(TickOutcomes, func(o [2]string) bool { return o[0] == outcome })
	return TickOutcomes[i][1]
}

// TickWhy says why t made no job, or why its job did not succeed; "": there is nothing to say.
func TickWhy(t schedules.Tick, zone *time.Location) string {
	if t.Why == "" {
		if t.Job.State != event.SucceededState {
			return t.Job.ErrorCode
		}
		return ""
	}
	text := words.SkippedText(t.Why)
	if t.Detail != "" {
		text += ": " + t.Detail
	}
	if t.Count > 1 {
		text = words.Count(t.Count, "tick") + ", the last at " + words.Time(t.To.In(zone)) + "; " + text
	}
	return text
}
