package wire

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// Root begins the path of every resource.
const Root = "/api/v1"

// MaxWait is how long one request waits for a job.
const MaxWait = time.Minute

// Process is a worker process, as the events name it.
type Process struct {
	Worker  string `json:"worker"`
	Boot    string `json:"boot,omitempty" openapi:"required=boot"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
}

// ProcessOf is w as JSON.
func ProcessOf(w event.Worker) Process {
	return Process{Worker: w.Name, Boot: w.Boot, Host: w.Host, PID: w.PID, Version: w.Version}
}

// Event is p as events name a process.
func (p Process) Event() event.Worker {
	return event.Worker{Name: p.Worker, Boot: p.Boot, Host: p.Host, PID: p.PID, Version: p.Version}
}

// Claims is the body of POST /claims: how claims ended, heartbeats, and tokens for the next claims, all in
// one transaction.
type Claims struct {
	Process      `openapi:"optional=worker,boot"`
	Queues       []string    `json:"queues,omitempty"`
	Capabilities []string    `json:"capabilities,omitempty"`
	Tokens       []string    `json:"tokens,omitempty" openapi:"maxItems=100"` // as many as there are free slots
	Lease        float64     `json:"lease,omitempty"`                         // seconds
	MaxRuntime   float64     `json:"max_runtime,omitempty"`                   // seconds
	Wait         float64     `json:"wait,omitempty" openapi:"maximum=60"`
	Outcomes     []Outcome   `json:"outcomes,omitempty"`
	Heartbeats   []Heartbeat `json:"heartbeats,omitempty"`
}

// Request is c as a request of package commands; its Limit is 0 where c has no tokens.
func (c *Claims) Request() (r commands.ClaimRequest, err error) {
	r = commands.ClaimRequest{Queues: c.Queues, Capabilities: c.Capabilities, Version: c.Version,
		Worker: c.Event(), Tokens: c.Tokens, Limit: len(c.Tokens)}
	if r.Lease, err = Duration("lease", c.Lease); err != nil {
		return r, err
	}
	r.MaxRuntime, err = Duration("max_runtime", c.MaxRuntime)
	return r, err
}

// Heartbeat extends the lease of one claim.
type Heartbeat struct {
	Job      event.JobID `json:"job"`
	Token    string      `json:"token"`
	Progress *float64    `json:"progress,omitempty"`
	Note     string      `json:"note,omitempty"`
	Lease    float64     `json:"lease,omitempty"` // seconds from now; 0: that of the request
	Owner    string      `json:"owner,omitempty"` // the worker that must hold the claim; "": the token suffices

	// Which process of the attempt is to end and may not be signalled, and why. While it is said, the lease is
	// not bounded by the max runtime.
	CannotEnd string `json:"cannot_end,omitempty"`
}

// Command is h as a command, with the lease of the request.
func (h Heartbeat) Command(lease time.Duration) (commands.Command, error) {
	own, err := Duration("lease", h.Lease)
	if err != nil {
		return nil, err
	}
	if own != 0 {
		lease = own
	}
	lease = cmp.Or(lease, commands.DefaultLease)
	return commands.Heartbeat{Token: h.Token, Owner: h.Owner, Lease: lease, Progress: h.Progress,
		Note: h.Note, CannotEnd: h.CannotEnd}, nil
}

// Plain leaves out of c what servers of older releases refuse, and reports whether there was any.
func (c *Claims) Plain() bool {
	some := false
	c.Heartbeats = slices.Clone(c.Heartbeats)
	for i := range c.Heartbeats {
		some = some || c.Heartbeats[i].CannotEnd != ""
		c.Heartbeats[i].CannotEnd = ""
	}
	return some
}

// Heartbeats is the body of POST /heartbeats: those of one process.
type Heartbeats struct {
	Boot   string      `json:"boot"`
	Lease  float64     `json:"lease,omitempty"` // seconds from now; 0: as long as the last time
	Claims []Heartbeat `json:"claims"`
}

// Worker is the body of PUT /workers/{boot}. Again says that the process is still there.
type Worker struct {
	Process      `openapi:"optional=boot"`
	Queues       []string `json:"queues,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Again        bool     `json:"again,omitempty"`
}

// TakeOver is the body of PUT /jobs/{id}/claims/{token}/process: another process goes on with the claim.
type TakeOver struct {
	Process `openapi:"optional=worker"`
	Owner   string  `json:"owner,omitempty"` // the worker that must hold the claim; "": the token suffices
	Lease   float64 `json:"lease,omitempty"` // 0: as long as the last one
}

// Duration is a number of seconds as a duration, to the microsecond.
func Duration(field string, seconds float64) (time.Duration, error) {
	const most = 1e9 // more than any limit of commands
	if !(math.Abs(seconds) <= most) {
		return 0, &commands.InvalidError{Field: field, Got: fmt.Sprint(seconds), Allowed: "a number of seconds"}
	}
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond, nil
}
