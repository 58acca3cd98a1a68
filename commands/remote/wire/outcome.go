package wire

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// The outcomes of a claim.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Released  = "released"
	Cancelled = "cancelled" // by the owner, who has stopped the work
	Stopped   = "stopped"   // a claim that was lost: its command has ended now
)

// Outcome says how a claim ended. It is the body of PUT /jobs/{id}/claims/{token}, without Job and Token.
type Outcome struct {
	Job          event.JobID `json:"job,omitempty"`
	Token        string      `json:"token,omitempty"`
	Owner        string      `json:"owner,omitempty"` // the worker that must hold the claim; "": any
	Outcome      string      `json:"outcome" openapi:"enum=succeeded,failed,released,cancelled,stopped"`
	Result       *string     `json:"result,omitempty"`
	ResultBase64 *string     `json:"result_base64,omitempty"`
	Code         string      `json:"code,omitempty"`
	Detail       string      `json:"detail,omitempty"`
	ExitCode     *int        `json:"exit_code,omitempty"`
	Signal       string      `json:"signal,omitempty"`
	RetryIn      *float64    `json:"retry_in,omitempty"`
	NoRetry      bool        `json:"no_retry,omitempty"`
	Delay        float64     `json:"delay,omitempty"`
	Snooze       bool        `json:"snooze,omitempty"`
	Reason       string      `json:"reason,omitempty"`
	Output       *Output     `json:"output,omitempty"`
	Cost         *Cost       `json:"cost,omitempty"`

	// the work went on beyond the claim's max runtime, and was done
	AfterMaxRuntime bool `json:"after_max_runtime,omitempty"`
}

// Output describes what the command of an attempt wrote; see event.Output.
type Output struct {
	StdoutSHA256     string `json:"stdout_sha256,omitempty"`
	StdoutBytes      int64  `json:"stdout_bytes,omitempty"`
	StderrSHA256     string `json:"stderr_sha256,omitempty"`
	StderrBytes      int64  `json:"stderr_bytes,omitempty"`
	StdoutKeptSHA256 string `json:"stdout_kept_sha256,omitempty"`
	StderrKeptSHA256 string `json:"stderr_kept_sha256,omitempty"`
}

// Cost is what the processes of an attempt used; see event.Cost. Times are in seconds.
type Cost struct {
	CPUUser   float64 `json:"cpu_user,omitempty"`
	CPUSystem float64 `json:"cpu_system,omitempty"`
	MaxRSS    int64   `json:"max_rss,omitempty"`
}

// fields are the optional fields of each outcome; token and owner aside.
var fields = map[string][]string{
	Succeeded: {"result", "exit_code", "output", "cost", "after_max_runtime"},
	Failed:    {"code", "detail", "exit_code", "signal", "retry_in", "no_retry", "output", "cost"},
	Released:  {"delay", "snooze", "reason", "exit_code", "output", "cost"},
	Cancelled: {"reason"},
	Stopped:   {"exit_code", "signal", "cost"},
}

// Command is o as a command. A field that the outcome does not have is an error, not ignored.
func (o Outcome) Command() (commands.Command, error) {
	allowed, ok := fields[o.Outcome]
	if !ok {
		return nil, &commands.InvalidError{Field: "outcome", Got: shown(o.Outcome),
			Allowed: "succeeded, failed, released, cancelled, stopped"}
	}
	given := map[string]bool{"result": o.Result != nil || o.ResultBase64 != nil, "code": o.Code != "",
		"detail": o.Detail != "", "exit_code": o.ExitCode != nil, "signal": o.Signal != "",
		"retry_in": o.RetryIn != nil, "no_retry": o.NoRetry, "delay": o.Delay != 0, "snooze": o.Snooze,
		"reason": o.Reason != "", "output": o.Output != nil, "cost": o.Cost != nil,
		"after_max_runtime": o.AfterMaxRuntime}
	for _, name := range allowed {
		delete(given, name)
	}
	for _, name := range []string{"result", "code", "detail", "exit_code", "signal", "retry_in", "no_retry",
		"delay", "snooze", "reason", "output", "cost", "after_max_runtime"} {
		if given[name] {
			return nil, &commands.InvalidError{Field: name, Got: "for " + o.Outcome,
				Allowed: "nothing of that name"}
		}
	}
	var output event.Output
	if o.Output != nil {
		output = event.Output(*o.Output)
	}
	cost, err := o.Cost.cost()
	if err != nil {
		return nil, err
	}
	switch o.Outcome {
	case Succeeded:
		result, err := Bytes("result", o.Result, o.ResultBase64)
		return commands.Succeed{Token: o.Token, Owner: o.Owner, Result: result, ExitCode: o.ExitCode,
			Output: output, Cost: cost, AfterMaxRuntime: o.AfterMaxRuntime}, err
	case Failed:
		f := commands.Fail{Token: o.Token, Owner: o.Owner, Code: o.Code, Detail: o.Detail, ExitCode: o.ExitCode,
			Signal: o.Signal, NoRetry: o.NoRetry, Output: output, Cost: cost}
		if o.RetryIn != nil {
			in, err := Duration("retry_in", *o.RetryIn)
			if err != nil {
				return nil, err
			}
			f.RetryIn = &in
		}
		return f, nil
	case Released:
		delay, err := Duration("delay", o.Delay)
		return commands.Release{Token: o.Token, Owner: o.Owner, Reason: o.Reason, Delay: delay, Snooze: o.Snooze,
			Output: output, ExitCode: o.ExitCode, Cost: cost}, err
	case Cancelled:
		if o.Token == "" {
			return nil, &commands.InvalidError{Field: "token", Allowed: "the token that the claim was given"}
		}
		return commands.Cancel{Token: o.Token, Reason: o.Reason}, nil
	}
	return commands.ReportStop{Token: o.Token, ExitCode: o.ExitCode, Signal: o.Signal, Cost: cost}, nil
}

// OutcomeOf is the command of a claim's owner as JSON; ok is false for any other command.
func OutcomeOf(job event.JobID, c commands.Command) (o Outcome, ok bool) {
	o.Job = job
	switch c := c.(type) {
	case commands.Succeed:
		o.Outcome, o.Token, o.Owner, o.ExitCode = Succeeded, c.Token, c.Owner, c.ExitCode
		o.Result, o.ResultBase64 = Text(c.Result)
		o.Output, o.Cost = outputOf(c.Output), costOf(c.Cost)
		o.AfterMaxRuntime = c.AfterMaxRuntime
	case commands.Fail:
		o.Outcome, o.Token, o.Owner, o.ExitCode = Failed, c.Token, c.Owner, c.ExitCode
		o.Code, o.Detail, o.Signal, o.NoRetry = c.Code, c.Detail, c.Signal, c.NoRetry
		if c.RetryIn != nil {
			o.RetryIn = new(c.RetryIn.Seconds())
		}
		o.Output, o.Cost = outputOf(c.Output), costOf(c.Cost)
	case commands.Release:
		o.Outcome, o.Token, o.Owner, o.Reason = Released, c.Token, c.Owner, c.Reason
		o.Delay, o.Snooze, o.ExitCode = c.Delay.Seconds(), c.Snooze, c.ExitCode
		o.Output, o.Cost = outputOf(c.Output), costOf(c.Cost)
	case commands.Cancel:
		o.Outcome, o.Token, o.Reason = Cancelled, c.Token, c.Reason
		return o, c.Token != ""
	case commands.ReportStop:
		o.Outcome, o.Token, o.ExitCode, o.Signal = Stopped, c.Token, c.ExitCode, c.Signal
		o.Cost = costOf(c.Cost)
	default:
		return o, false
	}
	return o, true
}

func outputOf(o event.Output) *Output {
	if o == (event.Output{}) {
		return nil
	}
	return new(Output(o))
}

func costOf(c event.Cost) *Cost {
	if c == (event.Cost{}) {
		return nil
	}
	return &Cost{c.CPUUser.Seconds(), c.CPUSystem.Seconds(), c.MaxRSS}
}

// cost is c as the event has it; nil is the zero Cost.
func (c *Cost) cost() (cost event.Cost, err error) {
	if c == nil {
		return cost, nil
	}
	cost.MaxRSS = c.MaxRSS
	if cost.CPUUser, err = Duration("cpu_user", c.CPUUser); err == nil {
		cost.CPUSystem, err = Duration("cpu_system", c.CPUSystem)
	}
	return cost, err
}

// Text returns b as text if it is UTF-8, else as base64; nothing for nil.
func Text(b []byte) (text, encoded *string) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		return new(string(b)), nil
	}
	return nil, new(base64.StdEncoding.EncodeToString(b))
}

// Bytes is the inverse of Text.
func Bytes(field string, text, encoded *string) ([]byte, error) {
	switch {
	case text != nil && encoded != nil:
		return nil, &commands.InvalidError{Field: field, Got: "and " + field + "_base64",
			Allowed: "one of the two"}
	case text != nil:
		return []byte(*text), nil
	case encoded == nil:
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil {
		return nil, &commands.InvalidError{Field: field + "_base64", Got: shown(*encoded), Allowed: "base64"}
	}
	return b, nil
}

func shown(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%.40q", text)
}
