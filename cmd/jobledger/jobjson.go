package main

import (
	"encoding/base64"
	"slices"
	"time"
	"unicode/utf8"

	"jobledger/ledger"
	"jobledger/projection"
)

// jobJSON is a job as --json prints it. Null is printed, never left out; durations are seconds.
type jobJSON struct {
	ID             ledger.JobID      `json:"id"`
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
	FinishedAt     *string           `json:"finished_at"`
	ErrorCode      *string           `json:"error_code"`
	ErrorDetail    *string           `json:"error_detail"`
}

// fullJobJSON is a job with what it was given and what it gave.
type fullJobJSON struct {
	jobJSON
	Payload       *string `json:"payload"`
	PayloadBase64 *string `json:"payload_base64"` // instead of payload where that is not UTF-8
	Result        *string `json:"result"`
	ResultBase64  *string `json:"result_base64"`
}

func toJSON(j projection.Job) jobJSON {
	out := jobJSON{ID: j.ID, Seq: j.Seq, State: j.State.String(), Queue: j.Queue, Priority: j.Priority, RunAt: timeOrNull(j.RunAt),
		Key: textOrNull(j.Key), Tags: j.Tags, Attempt: j.Attempt, Failures: j.Failures, MaxAttempts: j.MaxAttempts,
		Version: textOrNull(j.Version), Requires: slices.Clone(j.Requires), Worker: textOrNull(j.Worker.Name), ClaimedAt: timeOrNull(j.ClaimedAt),
		HeartbeatAt: timeOrNull(j.HeartbeatAt), LeaseExpiresAt: timeOrNull(j.LeaseUntil), Progress: j.Progress, Note: textOrNull(j.Note),
		FinishedAt: timeOrNull(j.FinishedAt), ErrorCode: textOrNull(j.ErrorCode), ErrorDetail: textOrNull(j.ErrorDetail)}
	if j.MaxRuntime > 0 {
		seconds := j.MaxRuntime.Seconds()
		out.MaxRuntime = &seconds
	}
	if out.Tags == nil {
		out.Tags = map[string]string{}
	}
	if out.Requires == nil {
		out.Requires = []string{}
	}
	return out
}

// toFullJSON is toJSON with payload and result. The lease token is for the claimer only.
func toFullJSON(j projection.Job, claimer bool) fullJobJSON {
	out := fullJobJSON{jobJSON: toJSON(j)}
	out.Payload, out.PayloadBase64 = bytesOrNull(j.Payload)
	out.Result, out.ResultBase64 = bytesOrNull(j.Result)
	if claimer {
		out.LeaseToken = textOrNull(j.Token)
	}
	return out
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := jsonTime(t)
	return &s
}

// bytesOrNull returns b as text if that is what it is, else as base64.
func bytesOrNull(b []byte) (text, encoded *string) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}

// stateNow adds what has become of a job to what it was.
type stateNow struct {
	StateNow string `json:"state_now"`
}
