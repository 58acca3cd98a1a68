package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// row is an Enqueue as the column job has it, without its id and payload, which have columns of their own.
type row struct {
	Queue       string            `json:"queue"`
	Key         string            `json:"key,omitempty"`
	UniqueWhile string            `json:"unique_while,omitempty"`
	OnDuplicate string            `json:"on_duplicate,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	RunAt       *time.Time        `json:"run_at,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	MaxRuntime  time.Duration     `json:"max_runtime_ns,omitempty"`
	Version     string            `json:"version,omitempty"`
	Requires    []string          `json:"requires,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Group       string            `json:"group,omitempty"`
	Backoff     *backoff          `json:"backoff,omitempty"`
	After       []string          `json:"after,omitempty"`
	Before      []string          `json:"before,omitempty"`
	Hold        bool              `json:"hold,omitempty"`
}

type backoff struct {
	Min    time.Duration `json:"min_ns"`
	Max    time.Duration `json:"max_ns"`
	Factor float64       `json:"factor"`
}

func encode(e commands.Enqueue) (string, error) {
	if e.Form != "" { // writers of that table would run programs as the user of a worker
		return "", &commands.InvalidError{Field: "form", Got: e.Form, Allowed: "none: an outbox takes no commands"}
	}
	r := row{
		Queue: e.Queue, Key: e.Key, UniqueWhile: e.UniqueWhile, OnDuplicate: e.OnDuplicate, Priority: e.Priority,
		MaxAttempts: e.MaxAttempts, MaxRuntime: e.MaxRuntime, Version: e.Version, Requires: e.Requires,
		Tags: e.Tags, Group: e.Group, After: references(e.After), Before: references(e.Before), Hold: e.Hold,
	}
	if !e.RunAt.IsZero() {
		at := e.RunAt.UTC()
		r.RunAt = &at
	}
	if e.Backoff != (event.Backoff{}) {
		r.Backoff = &backoff{e.Backoff.Min, e.Backoff.Max, e.Backoff.Factor}
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// decode is strict: what a later version of this program wrote, and this one does not know, must not be lost.
func decode(id, text string, payload []byte) (commands.Enqueue, error) {
	var r row
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return commands.Enqueue{}, err
	}
	e := commands.Enqueue{
		ID: id, Queue: r.Queue, Payload: payload, Key: r.Key, UniqueWhile: r.UniqueWhile,
		OnDuplicate: r.OnDuplicate, Priority: r.Priority, MaxAttempts: r.MaxAttempts, MaxRuntime: r.MaxRuntime,
		Version: r.Version, Requires: r.Requires, Tags: r.Tags, Group: r.Group, Hold: r.Hold,
	}
	if r.RunAt != nil {
		e.RunAt = *r.RunAt
	}
	if r.Backoff != nil {
		e.Backoff = event.Backoff{Min: r.Backoff.Min, Max: r.Backoff.Max, Factor: r.Backoff.Factor}
	}
	var err error
	if e.After, err = dependencies(r.After); err == nil {
		e.Before, err = dependencies(r.Before)
	}
	return e, err
}

func references(list []commands.Dependency) (texts []string) {
	for _, d := range list {
		texts = append(texts, event.FormatReference(d.Job, max(d.On, event.OnSucceeded)))
	}
	return texts
}

func dependencies(texts []string) (list []commands.Dependency, err error) {
	for _, text := range texts {
		id, on, err := event.ParseReference(text)
		if err != nil {
			return nil, fmt.Errorf("a dependency: %w", err)
		}
		list = append(list, commands.Dependency{Job: id, On: on})
	}
	return list, nil
}
