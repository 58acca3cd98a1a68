package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
)

// Bounds of one request with jobs.
const (
	maxJobs  = 1000
	maxBatch = 6 << 20 // bytes of JSON; the server takes 8 MiB
)

// jobLine is a job as a line of JSON has it. Its names are those of 'jobledger enqueue --jsonl'.
type jobLine struct {
	ID            string            `json:"id"`
	Queue         string            `json:"queue"`
	Payload       *string           `json:"payload,omitempty"`
	PayloadBase64 *string           `json:"payload_base64,omitempty"`
	Key           string            `json:"key,omitempty"`
	UniqueWhile   string            `json:"unique_while,omitempty"`
	OnDuplicate   string            `json:"on_duplicate,omitempty"`
	Group         string            `json:"group,omitempty"`
	Priority      int               `json:"priority,omitempty"`
	RunAt         string            `json:"run_at,omitempty"`
	MaxAttempts   int               `json:"max_attempts,omitempty"`
	MaxRuntime    string            `json:"max_runtime,omitempty"`
	Version       string            `json:"version,omitempty"`
	Requires      []string          `json:"requires,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	Backoff       string            `json:"backoff,omitempty"`
	After         []string          `json:"after,omitempty"`
	Before        []string          `json:"before,omitempty"`
	Hold          bool              `json:"hold,omitempty"`
}

func lineOf(e commands.Enqueue) jobLine {
	l := jobLine{ID: e.ID, Queue: e.Queue, Key: e.Key, UniqueWhile: e.UniqueWhile, OnDuplicate: e.OnDuplicate,
		Group: e.Group, Priority: e.Priority, MaxAttempts: e.MaxAttempts, Version: e.Version, Requires: e.Requires,
		Tags: e.Tags, Hold: e.Hold, After: references(e.After), Before: references(e.Before)}
	if len(e.Payload) > 0 {
		l.Payload, l.PayloadBase64 = wire.Text(e.Payload)
	}
	if !e.RunAt.IsZero() {
		l.RunAt = event.FormatTime(e.RunAt)
	}
	if e.MaxRuntime > 0 {
		l.MaxRuntime = e.MaxRuntime.String()
	}
	if b := e.Backoff; b != (event.Backoff{}) {
		l.Backoff = fmt.Sprintf("min %s, max %s, factor %g", b.Min, b.Max, b.Factor)
	}
	return l
}

func references(all []commands.Dependency) (texts []string) {
	for _, d := range all {
		texts = append(texts, event.FormatReference(d.Job, max(d.On, event.OnSucceeded)))
	}
	return texts
}

// Enqueue is that of [commands.Service]. More than 1,000 jobs, or more than 6 MiB of them, become several
// requests, of which each is carried out whole or not at all. A job without an ID gets one here, so that it
// can be asked for again. Calls of several goroutines at once share requests; each has its own outcome.
func (c *Client) Enqueue(ctx context.Context, _ string, jobs ...commands.Enqueue) (
	[]commands.Enqueued, error) {
	var all []commands.Enqueued
	var next lines
	flush := func() error {
		if len(next.jobs) == 0 {
			return nil
		}
		some, err := c.enqueue(ctx, next)
		all, next = append(all, some...), lines{}
		return err
	}
	for i := range jobs {
		e := jobs[i]
		if err := e.Check(); err != nil {
			return nil, err
		}
		if e.Form != "" {
			return nil, &commands.InvalidError{Field: "form", Got: e.Form, Allowed: "none: a server takes no commands"}
		}
		if e.ID == "" {
			e.ID = ulid.Make().String()
		}
		e.ID = strings.ToUpper(e.ID)
		e.MaxRuntime = e.MaxRuntime.Truncate(time.Microsecond)
		line, err := json.Marshal(lineOf(e))
		if err != nil {
			return nil, err
		}
		if len(next.jobs) == maxJobs || len(next.text)+len(line) > maxBatch {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		next.jobs, next.text = append(next.jobs, e), append(append(next.text, line...), '\n')
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return all, nil
}
