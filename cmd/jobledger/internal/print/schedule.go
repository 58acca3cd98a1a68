package print

import (
	"encoding/json"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/cron"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// Schedules is a table of schedules, as they are at now.
func Schedules(list []schedules.Schedule, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "SCHEDULE", Least: 8}, {Title: "QUEUE", Least: 8},
		{Title: "TIMES", Least: 12}, {Title: "NEXT"}, {Title: "IN", Right: true}, {Title: "LAST", Drop: 1}}}
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
		t.Add(s.Spec.Name, s.Spec.Queue, words.TimesText(s.Spec), next, left, last)
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
}

// ScheduleJSON is a schedule for programs.
type ScheduleJSON struct {
	SpecJSON
	Paused   bool     `json:"paused"`
	Next     *string  `json:"next"`
	LastTick *string  `json:"last_tick"`
	LastJob  *string  `json:"last_job"`
	Since    *string  `json:"since"`
	Actor    *string  `json:"actor"`
	Reason   *string  `json:"reason"`
	Upcoming []string `json:"upcoming,omitempty"` // the next ticks, where they were asked for
	Done     string   `json:"done,omitempty"`     // added, changed, removed or unchanged, after a change
	AsOf     *string  `json:"as_of,omitempty"`
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
	return ScheduleJSON{SpecJSON: SpecJSON{Name: spec.Name, Queue: spec.Queue, Cron: spec.Cron, Zone: spec.Zone,
		Every: length(spec.Every), From: from, Jitter: length(spec.Jitter), CatchUp: spec.CatchUp,
		Within: length(spec.Within), Overlap: spec.Overlap, Priority: spec.Priority,
		MaxAttempts: spec.MaxAttempts, MaxRuntime: length(spec.MaxRuntime), Version: spec.Version,
		Requires: spec.Requires, Tags: spec.Tags, Payload: payload},
		Paused: s.Paused, Next: words.TimeOrNull(s.Next), LastTick: words.TimeOrNull(s.LastTick),
		LastJob: words.TextOrNull(string(lastJob)), Since: words.TimeOrNull(s.Since),
		Actor: words.TextOrNull(s.Actor), Reason: words.TextOrNull(s.Reason)}
}

// ScheduleZone is the zone in which a schedule counts: its own, or, where it has none because it ticks by a
// period, that in which times are shown.
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
	length := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return words.Duration(d)
	}
	spec := s.Spec
	add("schedule", spec.Name)
	add("queue", spec.Queue)
	add("times", words.TimesText(spec))
	add("jitter", length(spec.Jitter))
	catchUp := spec.CatchUp
	if spec.Within > 0 {
		catchUp += ", within " + words.Duration(spec.Within)
	}
	add("catch-up", catchUp)
	add("overlap", spec.Overlap)
	add("payload", spec.Payload)
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
