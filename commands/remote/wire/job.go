package wire

import (
	"encoding/base64"
	"fmt"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// Job is a job as the API answers with it, and as --json prints it. Null is written, never left out;
// durations are seconds.
type Job struct {
	ID             event.JobID       `json:"id"`
	Seq            int64             `json:"seq"`
	State          string            `json:"state"`
	Queue          string            `json:"queue"`
	Priority       int               `json:"priority"`
	RunAt          *string           `json:"run_at"`
	Key            *string           `json:"key"`
	Tags           map[string]string `json:"tags"`
	Attempt        int               `json:"attempt"`
	Failures       int               `json:"failures"`
	MaxAttempts    int               `json:"max_attempts"`
	MaxRuntime     *float64          `json:"max_runtime"`
	Version        *string           `json:"version"`
	Requires       []string          `json:"requires"`
	Worker         *string           `json:"worker"`
	LeaseToken     *string           `json:"lease_token"` // only to its claimer
	ClaimedAt      *string           `json:"claimed_at"`
	HeartbeatAt    *string           `json:"heartbeat_at"`
	LeaseExpiresAt *string           `json:"lease_expires_at"`
	Progress       *float64          `json:"progress"`
	Note           *string           `json:"note"`
	// Which process of the claim is to end and may not be signalled, and why; left out if there is none.
	CannotEnd   string      `json:"cannot_end,omitempty"`
	FinishedAt  *string     `json:"finished_at"`
	ErrorCode   *string     `json:"error_code"`
	ErrorDetail *string     `json:"error_detail"`
	Schedule    string      `json:"schedule,omitempty"` // whose job it is
	Tick        string      `json:"tick,omitempty"`     // the moment of the schedule that it is for
	Job         event.JobID `json:"job"`                // the id: every object about a job has both
	Group       string      `json:"group,omitempty"`
	After       []string    `json:"after,omitempty"` // as given when it was enqueued
	Backoff     *Backoff    `json:"backoff,omitempty"`
	UniqueWhile string      `json:"unique_while,omitempty"` // how long key is its own; "": for ever
	// The form of the payload: argv is a command that the job carries; left out: any, as its worker reads it.
	Form string `json:"form,omitempty" openapi:"enum=argv"`
}

// Backoff is how long a job waits after its failures, in seconds.
type Backoff struct {
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Factor float64 `json:"factor"`
}

// JobAnswer is a job as a client reads it from an answer: with what only some answers have. All other fields
// are left out.
type JobAnswer struct {
	Job
	EndBy         *string `json:"end_by"` // when the maximum runtime in force ends the claim
	Payload       *string `json:"payload"`
	PayloadBase64 *string `json:"payload_base64"`
	Salt          *string `json:"salt"` // base64, for the digests of what the command writes
	Existing      bool    `json:"existing"`
	Replaced      bool    `json:"replaced"`
	Left          bool    `json:"left"`
}

// Minimal is a job for a client that prefers short answers ([PreferMinimal]): a [JobAnswer] without what is
// null, 0, false or empty. [JobAnswer.Projection] reads both alike.
type Minimal struct {
	minimalJob    `openapi:"required=id,seq,state,queue"`
	EndBy         *string `json:"end_by,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
	Salt          *string `json:"salt,omitempty"`
	Existing      bool    `json:"existing,omitempty"`
	Replaced      bool    `json:"replaced,omitempty"`
	Left          bool    `json:"left,omitempty"`
}

// PreferMinimal is the value of the header Prefer (RFC 7240) with which a client asks for [Minimal] jobs.
const PreferMinimal = "return=minimal"

// minimalJob has the fields of Job.
type minimalJob struct {
	ID             event.JobID       `json:"id,omitempty"`
	Seq            int64             `json:"seq,omitempty"`
	State          string            `json:"state,omitempty"`
	Queue          string            `json:"queue,omitempty"`
	Priority       int               `json:"priority,omitempty"`
	RunAt          *string           `json:"run_at,omitempty"`
	Key            *string           `json:"key,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	Attempt        int               `json:"attempt,omitempty"`
	Failures       int               `json:"failures,omitempty"`
	MaxAttempts    int               `json:"max_attempts,omitempty"`
	MaxRuntime     *float64          `json:"max_runtime,omitempty"`
	Version        *string           `json:"version,omitempty"`
	Requires       []string          `json:"requires,omitempty"`
	Worker         *string           `json:"worker,omitempty"`
	LeaseToken     *string           `json:"lease_token,omitempty"`
	ClaimedAt      *string           `json:"claimed_at,omitempty"`
	HeartbeatAt    *string           `json:"heartbeat_at,omitempty"`
	LeaseExpiresAt *string           `json:"lease_expires_at,omitempty"`
	Progress       *float64          `json:"progress,omitempty"`
	Note           *string           `json:"note,omitempty"`
	CannotEnd      string            `json:"cannot_end,omitempty"`
	FinishedAt     *string           `json:"finished_at,omitempty"`
	ErrorCode      *string           `json:"error_code,omitempty"`
	ErrorDetail    *string           `json:"error_detail,omitempty"`
	Schedule       string            `json:"schedule,omitempty"`
	Tick           string            `json:"tick,omitempty"`
	Job            event.JobID       `json:"job,omitempty"`
	Group          string            `json:"group,omitempty"`
	After          []string          `json:"after,omitempty"`
	Backoff        *Backoff          `json:"backoff,omitempty"`
	UniqueWhile    string            `json:"unique_while,omitempty"`
	Form           string            `json:"form,omitempty" openapi:"enum=argv"`
}

// Minimal is j as a short answer has it. The id is in it once.
func (j JobAnswer) Minimal() Minimal {
	j.Job.Job = ""
	return Minimal{minimalJob(j.Job), j.EndBy, j.Payload, j.PayloadBase64, j.Salt, j.Existing, j.Replaced,
		j.Left}
}

// Projection is j as package projection has it. N is 0: jobs have no number here.
func (j JobAnswer) Projection() (out projection.Job, err error) {
	out = projection.Job{ID: j.ID, Seq: j.Seq, Queue: j.Queue, Priority: j.Priority, Key: text(j.Key),
		UniqueWhile: j.UniqueWhile, Form: j.Form, Group: j.Group, Tags: j.Tags, MaxAttempts: j.MaxAttempts,
		Version: text(j.Version), Requires: j.Requires, After: j.After, Schedule: j.Schedule,
		Attempt: j.Attempt, Failures: j.Failures, Worker: event.Worker{Name: text(j.Worker)},
		Token: text(j.LeaseToken), Progress: j.Progress, Note: text(j.Note), CannotEnd: j.CannotEnd,
		ErrorCode: text(j.ErrorCode), ErrorDetail: text(j.ErrorDetail)}
	if out.Tags == nil { // as a minimal answer has it
		out.Tags = map[string]string{}
	}
	if out.Requires == nil {
		out.Requires = []string{}
	}
	if out.State, err = event.ParseState(j.State); err != nil {
		return out, fmt.Errorf("job %s: %w", j.ID, err)
	}
	if j.MaxRuntime != nil {
		if out.MaxRuntime, err = Duration("max_runtime", *j.MaxRuntime); err != nil {
			return out, err
		}
	}
	tick := &j.Tick
	if j.Tick == "" {
		tick = nil
	}
	for _, t := range []struct {
		to   *time.Time
		from *string
	}{{&out.RunAt, j.RunAt}, {&out.ClaimedAt, j.ClaimedAt}, {&out.HeartbeatAt, j.HeartbeatAt},
		{&out.LeaseUntil, j.LeaseExpiresAt}, {&out.EndBy, j.EndBy}, {&out.FinishedAt, j.FinishedAt},
		{&out.Tick, tick}} {
		if t.from == nil {
			continue
		}
		if *t.to, err = time.Parse(time.RFC3339Nano, *t.from); err != nil {
			return out, fmt.Errorf("job %s: %w", j.ID, err)
		}
	}
	if out.Payload, err = Bytes("payload", j.Payload, j.PayloadBase64); err != nil {
		return out, err
	}
	if j.Salt != nil {
		out.Salt, err = base64.StdEncoding.DecodeString(*j.Salt)
	}
	return out, err
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ClaimsAnswer is the answer to POST /claims, as the client reads it.
type ClaimsAnswer struct {
	Claims     []JobAnswer `json:"claims"`
	Outcomes   []Answer    `json:"outcomes"`
	Heartbeats []Answer    `json:"heartbeats"`
}

// Answer is what became of one outcome or heartbeat.
type Answer struct {
	Token   string     `json:"token"`
	Job     *JobAnswer `json:"job"`     // after it; null where it was refused and nothing is known of the job
	Problem *Problem   `json:"problem"` // null: it is recorded
}

// Ready is the answer to GET /claims/ready.
type Ready struct {
	Ready bool `json:"ready"`
	// when the next job that fits is due; null: none is known
	Next *string `json:"next" openapi:"format=date-time"`
}

// Items is a list.
type Items struct {
	Items []JobAnswer `json:"items"`
}
