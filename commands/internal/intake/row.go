package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"jobledger/ledger/event"
)

// Reference is commands.Dependency.
type Reference interface {
	~struct {
		Job event.JobID
		On  event.Ending
	}
}

// Job is commands.Enqueue, which says what the fields are: the two are converted into each other.
type Job[D Reference] struct {
	ID          string
	Queue       string
	Payload     []byte
	Key         string
	UniqueWhile string
	OnDuplicate string
	Priority    int
	RunAt       time.Time
	MaxAttempts int
	MaxRuntime  time.Duration
	Version     string
	Requires    []string
	Tags        map[string]string
	Group       string
	Backoff     event.Backoff
	Form        string
	After       []D
	Before      []D
	Hold        bool
}

// row is a Job as the column job has it, without its id and payload, which have columns of their own.
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

// Encode returns what the column job has of e. A Form is left out: writers of such a table would run programs
// as the user of a worker.
func Encode[D Reference](e Job[D]) (string, error) {
	r := row{
		Queue: e.Queue, Key: e.Key, UniqueWhile: e.UniqueWhile, OnDuplicate: e.OnDuplicate, Priority: e.Priority,
		MaxAttempts: e.MaxAttempts, MaxRuntime: e.MaxRuntime, Version: e.Version, Requires: e.Requires,
		Tags: e.Tags, Group: e.Group, After: references(e.After), Before: references(e.Before), Hold: e.Hold,
	}
	if !e.RunAt.IsZero() {
		r.RunAt = new(e.RunAt.UTC())
	}
	if e.Backoff != (event.Backoff{}) {
		r.Backoff = &backoff{e.Backoff.Min, e.Backoff.Max, e.Backoff.Factor}
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// Decode returns the job of a row. It is strict: what a later version of this program wrote, and this one
// does not know, must not be lost.
func Decode[D Reference](id, text string, payload []byte) (Job[D], error) {
	var r row
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Job[D]{}, err
	}
	e := Job[D]{
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
	if e.After, err = dependencies[D](r.After); err == nil {
		e.Before, err = dependencies[D](r.Before)
	}
	return e, err
}

func references[D Reference](list []D) (texts []string) {
	for _, one := range list {
		d := struct {
			Job event.JobID
			On  event.Ending
		}(one)
		texts = append(texts, event.FormatReference(d.Job, max(d.On, event.OnSucceeded)))
	}
	return texts
}

func dependencies[D Reference](texts []string) (list []D, err error) {
	for _, text := range texts {
		id, on, err := event.ParseReference(text)
		if err != nil {
			return nil, fmt.Errorf("a dependency: %w", err)
		}
		list = append(list, D{Job: id, On: on})
	}
	return list, nil
}
