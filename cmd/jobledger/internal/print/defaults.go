package print

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
)

// Defaults is a table of what the jobs of queues get by default.
func Defaults(found []defaults.Defaults, zone *time.Location) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "QUEUE", Least: 8}, {Title: "ATTEMPTS", Right: true},
		{Title: "MAX RUNTIME", Right: true}, {Title: "BACKOFF"}, {Title: "SINCE", Drop: 1},
		{Title: "BY", Drop: 2, Least: 8}, {Title: "REASON", Least: 8}}}
	for _, d := range found {
		runtime, backoff, name := "-", "-", d.Queue
		if d.Commands {
			name += " (commands)"
		}
		if d.MaxRuntime > 0 {
			runtime = words.Duration(d.MaxRuntime)
		}
		if d.Backoff != (event.Backoff{}) {
			backoff = words.BackoffText(d.Backoff)
		}
		t.Add(name, orDash(d.MaxAttempts), runtime, backoff, words.Millis(d.Since.In(zone)), d.Actor, d.Reason)
	}
	return t
}

// DefaultsJSON is the defaults of a queue for programs; null: no such default. Durations are seconds.
type DefaultsJSON struct {
	Queue       string             `json:"queue"`
	MaxAttempts *int               `json:"max_attempts"`
	MaxRuntime  *float64           `json:"max_runtime"`
	Backoff     *words.BackoffJSON `json:"backoff"`
	Since       *string            `json:"since"`
	Actor       *string            `json:"actor"`
	Reason      *string            `json:"reason"`
	// true: its jobs carry their commands, and it takes no others
	Commands bool `json:"commands,omitempty"`
}

// NewDefaultsJSON is d for programs.
func NewDefaultsJSON(d defaults.Defaults) DefaultsJSON {
	return DefaultsJSON{Queue: d.Queue, MaxAttempts: words.OrNull(d.MaxAttempts),
		MaxRuntime: words.OrNull(d.MaxRuntime.Seconds()), Backoff: words.BackoffOrNull(d.Backoff),
		Since: words.TimeOrNull(d.Since), Actor: words.TextOrNull(d.Actor), Reason: words.TextOrNull(d.Reason),
		Commands: d.Commands}
}

// DefaultsThenJSON is defaults as they were.
type DefaultsThenJSON struct {
	DefaultsJSON
	AsOf *string `json:"as_of" openapi:"optional=as_of,pos"`
	Pos  int64   `json:"pos"`
}

// NewDefaultsThenJSON is the JSON form of d at m.
func NewDefaultsThenJSON(d defaults.Defaults, m projection.Moment) DefaultsThenJSON {
	return DefaultsThenJSON{NewDefaultsJSON(d), words.TimeOrNull(m.At), m.Pos}
}

// DefaultsSetJSON is the defaults of a queue after they were set, for programs.
type DefaultsSetJSON struct {
	DefaultsJSON
	Changed bool `json:"changed"` // false: they were so already
}

// DefaultsSet says in a sentence what the defaults of a queue are, and whether that was so already.
func DefaultsSet(d defaults.Defaults, changed bool) string {
	text := fmt.Sprintf("queue %s: %s", d.Queue, words.DefaultsText(d.Body(d.Queue, "")))
	if !changed {
		text += ", as before"
	}
	return text
}
