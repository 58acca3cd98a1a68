package hook

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// QueuePrefix begins the names of the queues with deliveries. What happens in these is not sent.
const QueuePrefix = "webhook."

// Bounds of what an [Endpoint] may say.
const (
	MaxName     = 40
	MaxURL      = 2 << 10
	MaxParallel = 16
	MinTimeout  = time.Second
	MaxTimeout  = 30 * time.Second
)

// Defaults of an [Endpoint].
const (
	DefaultTimeout  = 15 * time.Second
	DefaultParallel = 1
)

// quiet are the kinds that are sent only if an endpoint asks for them.
var quiet = []event.Kind{event.KindHeartbeat, event.KindWorkerStarted, event.KindWorkerStopped}

// Endpoint is one webhook: an address, and which events it gets.
type Endpoint struct {
	Name     string         // 1 to 40 of a–z 0–9 _ -
	URL      string         // https; http for addresses that Allow has
	Queues   []string       // events of these queues and their jobs only; a name may end with *; none: all
	Kinds    []string       // none: all but heartbeat, worker_started and worker_stopped
	Allow    []netip.Prefix // addresses that may be reached although they are not public
	Parallel int            // requests at a time; with 1 they are in the order of the events
	Timeout  time.Duration  // of one request
	Created  time.Time
	After    Place    // it gets the events after that
	Secrets  []Secret // the newest first
}

// Place names an event: its position, and its id, which differs if another history has another event at that
// position.
type Place struct {
	Pos int64     `json:"pos"` // 0: before the first event
	ID  string    `json:"id"`
	At  time.Time `json:"at,omitzero"` // zero: not known
}

// Queue is the queue of its deliveries.
func (e Endpoint) Queue() string { return QueuePrefix + e.Name }

// Host is what may be said about its address: a path or a query may have a secret.
func (e Endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Check returns a [commands.InvalidError] unless e is complete and within the bounds.
func (e Endpoint) Check() error {
	for _, check := range []func() error{e.checkName, e.checkURL, e.checkFilter} {
		if err := check(); err != nil {
			return err
		}
	}
	switch {
	case e.Parallel < 1 || e.Parallel > MaxParallel:
		return &commands.InvalidError{Field: "parallel", Got: fmt.Sprint(e.Parallel),
			Allowed: fmt.Sprintf("1 to %d", MaxParallel)}
	case e.Timeout < MinTimeout || e.Timeout > MaxTimeout:
		return &commands.InvalidError{Field: "timeout", Got: e.Timeout.String(),
			Allowed: fmt.Sprintf("%s to %s", MinTimeout, MaxTimeout)}
	case len(e.Secrets) == 0:
		return &commands.InvalidError{Field: "secret", Allowed: "one at least"}
	}
	return nil
}

func (e Endpoint) checkName() error {
	if strings.Contains(e.Name, ".") || len(e.Name) > MaxName || commands.CheckQueue(e.Queue()) != nil ||
		e.Name == "" {
		return &commands.InvalidError{Field: "name", Got: fmt.Sprintf("%.60q", e.Name),
			Allowed: fmt.Sprintf("1 to %d of a-z 0-9 _ -", MaxName)}
	}
	return nil
}

// checkURL never has the URL in its error: it may have a secret.
func (e Endpoint) checkURL() error {
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		return &commands.InvalidError{Field: "url", Allowed: "https://HOST/PATH"}
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return &commands.InvalidError{Field: "url", Got: "of this form", Allowed: "https://HOST/PATH"}
	case len(e.URL) > MaxURL:
		return &commands.InvalidError{Field: "url", Got: fmt.Sprintf("of %d bytes", len(e.URL)),
			Allowed: fmt.Sprintf("up to %d", MaxURL)}
	case u.User != nil || u.Fragment != "":
		return &commands.InvalidError{Field: "url", Got: "with a user, a password or a #",
			Allowed: "https://HOST/PATH"}
	case u.Scheme == "http" && len(e.Allow) == 0:
		return &commands.InvalidError{Field: "url", Got: "with http",
			Allowed: "https; http is for addresses that --allow names, such as 127.0.0.0/8"}
	}
	return nil
}

func (e Endpoint) checkFilter() error {
	for _, q := range e.Queues {
		name, star := strings.CutSuffix(q, "*")
		if !(star && name == "") && commands.CheckQueue(name) != nil {
			return &commands.InvalidError{Field: "queue", Got: fmt.Sprintf("%.80q", q),
				Allowed: "the name of a queue, which may end with one *"}
		}
	}
	for _, k := range e.Kinds {
		if _, err := event.ParseKind(k); err != nil {
			return &commands.InvalidError{Field: "kind", Got: fmt.Sprintf("%.40q", k),
				Allowed: "a kind of event: see 'jobledger help kinds'"}
		}
	}
	return nil
}

// kinds are the kinds of events that e gets.
func (e Endpoint) kinds() (kinds []event.Kind) {
	for _, k := range e.Kinds {
		if kind, err := event.ParseKind(k); err == nil {
			kinds = append(kinds, kind)
		}
	}
	if len(e.Kinds) > 0 {
		return kinds
	}
	for _, k := range event.Kinds() {
		if !slices.Contains(quiet, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// selects reports whether e gets the event x, which is about queue; "": about none.
func (e Endpoint) selects(x event.Event, queue string) bool {
	if strings.HasPrefix(queue, QueuePrefix) || !slices.Contains(e.kinds(), x.Kind()) {
		return false
	}
	return len(e.Queues) == 0 || slices.ContainsFunc(e.Queues, func(pattern string) bool {
		start, star := strings.CutSuffix(pattern, "*")
		return queue == pattern || star && strings.HasPrefix(queue, start)
	})
}
