package words

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// JobJSON is a job as --json prints it, and as the API answers with it.
type JobJSON = wire.Job

// BackoffJSON is how long a job waits after its failures, in seconds.
type BackoffJSON = wire.Backoff

// BackoffOrNull is b as JSON; nil if it is zero.
func BackoffOrNull(b event.Backoff) *BackoffJSON {
	if b == (event.Backoff{}) {
		return nil
	}
	return &BackoffJSON{Min: b.Min.Seconds(), Max: b.Max.Seconds(), Factor: b.Factor}
}

// FullJobJSON is a job with its payload and its result.
type FullJobJSON struct {
	JobJSON
	BodiesJSON
}

// BodiesJSON is the payload and the result of a job.
type BodiesJSON struct {
	Payload       *string `json:"payload"`
	PayloadBase64 *string `json:"payload_base64"` // instead of payload where that is not UTF-8
	Result        *string `json:"result"`
	ResultBase64  *string `json:"result_base64"`
}

func ToJSON(j projection.Job) JobJSON {
	out := JobJSON{ID: j.ID, Job: j.ID, Group: j.Group, After: j.After, Backoff: BackoffOrNull(j.Backoff),
		UniqueWhile: j.UniqueWhile, Form: j.Form,
		Seq:   j.Seq,
		State: j.State.String(), Queue: j.Queue,
		Priority: j.Priority,
		RunAt:    TimeOrNull(j.RunAt),
		Key:      TextOrNull(j.Key), Tags: j.Tags, Attempt: j.Attempt, Failures: j.Failures,
		MaxAttempts: j.MaxAttempts, MaxRuntime: OrNull(j.MaxRuntime.Seconds()),
		Version: TextOrNull(j.Version), Requires: slices.Clone(j.Requires), Worker: TextOrNull(j.Worker.Name),
		ClaimedAt:   TimeOrNull(j.ClaimedAt),
		HeartbeatAt: TimeOrNull(j.HeartbeatAt), LeaseExpiresAt: TimeOrNull(j.LeaseUntil), Progress: j.Progress,
		Note:       TextOrNull(j.Note),
		CannotEnd:  j.CannotEnd,
		FinishedAt: TimeOrNull(j.FinishedAt), ErrorCode: TextOrNull(j.ErrorCode),
		ErrorDetail: TextOrNull(j.ErrorDetail)}
	if out.Schedule = j.Schedule; !j.Tick.IsZero() {
		out.Tick = event.FormatTime(j.Tick)
	}
	if out.Tags == nil {
		out.Tags = map[string]string{}
	}
	if out.Requires == nil {
		out.Requires = []string{}
	}
	return out
}

// ToFullJSON is toJSON with payload and result. The lease token is for the claimer only.
func ToFullJSON(j projection.Job, claimer bool) FullJobJSON {
	out := FullJobJSON{JobJSON: ToJSON(j)}
	out.Payload, out.PayloadBase64 = wire.Text(j.Payload)
	out.Result, out.ResultBase64 = wire.Text(j.Result)
	if claimer {
		out.LeaseToken = TextOrNull(j.Token)
	}
	return out
}

func TextOrNull(s string) *string { return OrNull(s) }

// OrNull is v as JSON: null if it is zero.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(JSONTime(t))
}

// ExitJSON adds how the command of a job's last failure ended.
type ExitJSON struct {
	ExitCode *int    `json:"exit_code"`
	Signal   *string `json:"signal"`
}

// ToExitJSON is e as JSON.
func ToExitJSON(e projection.Exit) ExitJSON { return ExitJSON{e.Code, TextOrNull(e.Signal)} }

// FailureText is an error code for people: where a command was the cause, how it ended.
func FailureText(code string, e projection.Exit) string {
	end := ""
	switch {
	case e.Code != nil:
		end = fmt.Sprintf("exit %d", *e.Code)
	case e.Signal != "":
		end = "signal " + e.Signal
	}
	switch {
	case end == "" || code == "":
		return code
	case code == "exit_code" && e.Code != nil, code == "signal":
		return end
	}
	return code + " (" + end + ")"
}

// StateNow adds the present state of a job to its state at a moment.
type StateNow struct {
	StateNow string `json:"state_now"`
}

// JSONLine returns v as one line of JSON: characters that could harm a terminal are written as \u sequences.
func JSONLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := b.Bytes()
	if !IsASCII(line) {
		line = EscapeJSON(line)
	}
	return line, nil
}
