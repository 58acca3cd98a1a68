package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/commands"
)

// Scope is one kind of thing that a grant permits.
type Scope string

// The scopes.
const (
	Read    Scope = "read"    // all that is known of jobs but payloads, results and output; error_detail too
	Bodies  Scope = "bodies"  // payloads, results, and what commands wrote
	Enqueue Scope = "enqueue" // new jobs
	Work    Scope = "work"    // claims, with payloads, and what their owner says of them
	Operate Scope = "operate" // cancel, retry, reschedule, pause
	Erase   Scope = "erase"   // removing payloads and results for good
	Metrics Scope = "metrics" // the figures at /metrics
	Admin   Scope = "admin"   // profiles of the process of the server
)

// Scopes are all of them.
var Scopes = []Scope{Read, Bodies, Enqueue, Work, Operate, Erase, Metrics, Admin}

// Grant is the rights of one token, or of one user.
type Grant struct {
	ID      string // part of the token; "": there is none
	Name    string // unique among those that are in force
	Scopes  []Scope
	Queues  []string // names, of which each may end with one *
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: it was not
	Used    string    // the last day on which it was used, as 2026-05-04; "": never
}

// Has reports whether g has the scope, for any queue.
func (g Grant) Has(scope Scope) bool { return slices.Contains(g.Scopes, scope) }

// AllQueues reports whether g is for every queue.
func (g Grant) AllQueues() bool { return slices.Contains(g.Queues, "*") }

// May reports whether g has the scope for this queue.
func (g Grant) May(scope Scope, queue string) bool {
	return g.Has(scope) && g.Queue(queue)
}

// Queue reports whether g is for this queue.
func (g Grant) Queue(queue string) bool {
	return slices.ContainsFunc(g.Queues, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(queue, prefix)
		}
		return pattern == queue
	})
}

// InForce reports whether g permits anything at now.
func (g Grant) InForce(now time.Time) bool {
	return g.Revoked.IsZero() && (g.Expires.IsZero() || now.Before(g.Expires))
}

// State says in one word whether g is in force at now: valid, expired or revoked.
func (g Grant) State(now time.Time) string {
	switch {
	case !g.Revoked.IsZero():
		return "revoked"
	case !g.InForce(now):
		return "expired"
	}
	return "valid"
}

// CheckName returns an error unless name may be that of a grant: it becomes part of the actor http:NAME.
func CheckName(name string) error {
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !(c >= '0' && c <= '9') && strings.IndexByte("._-", c) < 0 {
			name = ""
		}
	}
	if name == "" || len(name) > 64 {
		return &commands.InvalidError{Field: "name", Got: "", Allowed: "1 to 64 of letters, digits and . _ -"}
	}
	return nil
}

// ParseScope returns the scope that text names.
func ParseScope(text string) (Scope, error) {
	if s := Scope(text); slices.Contains(Scopes, s) {
		return s, nil
	}
	var names []string
	for _, s := range Scopes {
		names = append(names, string(s))
	}
	return "", &commands.InvalidError{Field: "scope", Got: fmt.Sprintf("%.40q", text),
		Allowed: strings.Join(names, ", ")}
}

// CheckPattern returns an error unless text is the name of a queue, or the beginning of one and a *.
func CheckPattern(text string) error {
	name, star := strings.CutSuffix(text, "*")
	if star && name == "" || commands.CheckQueue(name) == nil {
		return nil
	}
	return &commands.InvalidError{Field: "queue", Got: fmt.Sprintf("%.80q", text),
		Allowed: "the name of a queue, which may end with one *"}
}
