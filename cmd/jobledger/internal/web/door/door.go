package door

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/ledger"
)

// Limits of a request.
const (
	MaxHeader      = 16 << 10 // bytes
	maxForm        = 4 << 10  // bytes of a body, unless its route says otherwise
	MaxConnections = 2048
	AskTimeout     = 5 * time.Second // to compute an answer, unless the Config says otherwise
	longFactor     = 5               // as long may a long one take
)

// Config says who is let in, and how a [Door] speaks to people.
type Config struct {
	Store       *ledger.Store
	Now         func() time.Time
	ReadOnly    bool         // a user who needs no token may change nothing
	AllowErase  bool         // a session may erase
	Owner       string       // the actor of the user who runs the server, as events name it
	Certificate *Certificate // for TLS; nil: there is none
	ClientCA    *ClientCA    // signs certificates of clients, with a Certificate; nil: they need none
	Proxy       *Proxy       // in front of the server; nil: there is none
	Prefix      Prefix       // of the path of every address
	Hosts       []string     // what requests may name as their host, besides the address of the listener
	Peers       Peers        // other users on a Unix socket
	Keys        *access.Keys // finds the grants of tokens; nil: there are none
	Rate        float64      // requests a second of one token, on average; 0: access.PerSecond

	AskTimeout time.Duration // to compute an answer; 0: [AskTimeout]

	// Announce shows a login link to the user who runs the server; nil: there are none.
	Announce func(link string)
	// Report logs a fault of the server, in one line; nil: it is dropped.
	Report func(format string, args ...any)
	// ShowProblem answers with a page that says p; nil: problems are answered as JSON only.
	ShowProblem func(w http.ResponseWriter, r *http.Request, p *Problem) error
}

// Door lets requests in to their routes, or refuses them. It is safe for concurrent use.
type Door struct {
	Config
	routes   []Route
	mux      *http.ServeMux
	hosts    map[string]bool // what the header Host may be; nil: anything, on a Unix socket
	origin   string          // of the login link, as in http://jobledger.localhost:4711
	logins   logins
	sessions sessions
	limits   access.Limits
	requests requests
	drain    drain
	Lag      func(tail int64) time.Duration // for how long streams have been behind tail; nil: never
	lost     chan error                     // why no request can be answered any more
	once     sync.Once
}

// New returns a door without routes.
func New(c Config) *Door {
	if c.Report == nil {
		c.Report = func(string, ...any) {}
	}
	c.AskTimeout = cmp.Or(c.AskTimeout, AskTimeout)
	return &Door{Config: c, mux: http.NewServeMux(), lost: make(chan error, 1),
		drain: drain{closing: make(chan struct{}), idle: make(chan struct{}, 1)}}
}

// Add adds routes. It is called before the first request.
func (d *Door) Add(routes ...Route) {
	d.routes = append(d.routes, routes...)
	for _, r := range routes {
		d.mux.Handle(r.Pattern, d.serveRoute(r))
	}
}

// Routes are all that were added.
func (d *Door) Routes() []Route { return d.routes }

// ListenOn learns from l what requests may name as their host. It is called before the first request.
func (d *Door) ListenOn(l net.Listener) {
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return
	}
	_, port, _ := net.SplitHostPort(address.String())
	d.hosts = make(map[string]bool)
	for _, name := range []string{"jobledger.localhost", "localhost", address.IP.String()} {
		d.hosts[net.JoinHostPort(name, port)] = true
	}
	for _, host := range d.Hosts {
		d.hosts[strings.ToLower(host)] = true
	}
	if d.Proxy != nil {
		d.hosts[d.Proxy.Host] = true
	}
	d.origin = "http://" + net.JoinHostPort("jobledger.localhost", port)
	switch {
	case d.Proxy != nil:
		d.origin = "https://" + d.Proxy.Host
	case d.Certificate != nil:
		d.origin = "https://" + net.JoinHostPort(d.Certificate.name(), port)
	}
}

// Lost has the error because of which no request can be answered any more.
func (d *Door) Lost() <-chan error { return d.lost }

// lose ends the server because of err.
func (d *Door) lose(err error) {
	d.once.Do(func() { d.lost <- err })
}

// OnSocket reports whether clients reach the server by the path of a Unix socket, and by no host.
func (d *Door) OnSocket() bool { return d.hosts == nil && d.Proxy == nil }

// HealthRoutes are the routes that report whether the server is alive and ready.
func (d *Door) HealthRoutes() []Route {
	return []Route{
		{Pattern: "GET /healthz", Handle: func(w http.ResponseWriter, _ *http.Request) error {
			return plain(w, "ok\n")
		}, Doc: Doc{ID: "getHealth", Summary: "That the process answers; needs no credential.",
			Types: []string{"text/plain"}}},
		{Pattern: "GET /readyz", Handle: d.readyz, Doc: Doc{ID: "getReadiness",
			Summary: "That the ledger can be read; needs no credential.", Types: []string{"text/plain"}}},
	}
}

// MaxLag is from when on a server whose streams are behind the ledger is not ready.
const MaxLag = 10 * time.Second

// readyz answers whether requests can be answered now.
func (d *Door) readyz(w http.ResponseWriter, r *http.Request) error {
	if d.drain.ending.Load() {
		return errDraining
	}
	tail, err := ledger.Read(r.Context(), d.Store, func(tx *ledger.Tx) (int64, error) {
		return tx.Tail(r.Context())
	})
	if err != nil {
		return Refusal(http.StatusServiceUnavailable, d.ProblemOf(err).Code, "the ledger cannot be read now")
	}
	if d.Lag != nil && d.Lag(tail) >= MaxLag {
		return Refusal(http.StatusServiceUnavailable, "busy", "the streams of events are behind the ledger")
	}
	return plain(w, "ready\n")
}

func plain(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	return Send(w, []byte(text))
}

// callerKey is the key of a request's [Caller] in its context.
type callerKey struct{}

// ownKey is the key of what [AsOwner] puts into a context.
type ownKey struct{}

// AsOwner returns the context of requests that the user who runs this program makes in its own process,
// without a connection.
func AsOwner(ctx context.Context) context.Context { return context.WithValue(ctx, ownKey{}, true) }

// Right is a set of things that a caller may do.
type Right uint16

// The rights.
const (
	Read    Right = 1 << iota // pages, figures, events; what a job is, and how it went
	Bodies                    // payloads, results, logs
	Metrics                   // figures for Prometheus
	Operate                   // cancel, retry, reschedule, pause, resume
	Erase                     // erase payloads and results
	Enqueue                   // add jobs
	Work                      // claim jobs, and say how they went
	Admin                     // look into the process of the server

	None Right = 0
	Any  Right = 1 << 15 // any scope will do: every caller has it

	// inSession is what the user who runs the server may do in a browser; Erase too, with Config.AllowErase. It
	// cannot be undone, and who comes to a browser that is logged in could do it.
	inSession = Read | Bodies | Metrics | Operate
	// owned is the grant of the user who runs the server, as identified by the operating system.
	owned = inSession | Erase | Enqueue | Work
)

// rightOf are the rights of the scopes.
var rightOf = map[access.Scope]Right{access.Read: Read, access.Bodies: Bodies, access.Metrics: Metrics,
	access.Operate: Operate, access.Erase: Erase, access.Enqueue: Enqueue, access.Work: Work,
	access.Admin: Admin}

// Caller is who made a request.
type Caller struct {
	access.Grant        // with the queues that it is for
	Actor        string // as events name it
	Rights       Right
	Session      bool // a login link has let it in
}

// Has reports whether the caller has every right of r.
func (c Caller) Has(r Right) bool { return (c.Rights|Any)&r == r }

// Scopes are the scopes that a token for r needs, in the order of [access.Scopes].
func (r Right) Scopes() (scopes []access.Scope) {
	for _, scope := range access.Scopes {
		if r&rightOf[scope] != 0 {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// CallerOf returns who made the request of ctx.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Reading returns ctx for a caller that may only read, including bodies.
func Reading(ctx context.Context) context.Context {
	c := CallerOf(ctx)
	c.Rights &= Read | Bodies
	return context.WithValue(ctx, callerKey{}, c)
}

// Caller returns who made r, or the error of its credential; both are nil if it has no credential. A request
// with a token has no other credential: neither its client's certificate nor its cookie is looked at. If the
// client has a certificate, the cookie is not.
func (d *Door) Caller(r *http.Request) (c Caller, ok bool, err error) {
	switch {
	case r.Header["Authorization"] != nil:
		c, err = d.bearer(r)
		return c, err == nil, err
	case d.ClientCA != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0:
		c, err = d.certified(r)
		return c, err == nil, err
	case r.Context().Value(ownKey{}) != nil:
		return d.everything(Caller{Actor: d.Owner, Rights: owned}), true, nil
	case samePeer(r):
		return d.everything(Caller{Actor: "unix:" + d.owner(), Rights: owned}), true, nil
	}
	if c, ok := d.peerOf(r); ok {
		return c, true, nil
	}
	if key, ok := d.sessionOf(r); ok && d.sessions.holds(key, d.Now()) {
		rights := inSession
		if d.AllowErase {
			rights |= Erase
		}
		return d.everything(Caller{Actor: "http:" + d.owner(), Rights: rights, Session: true}), true, nil
	}
	return Caller{}, false, nil
}

// Admits reports whether r has a credential that is still valid.
func (d *Door) Admits(r *http.Request) bool {
	_, ok, _ := d.Caller(r)
	return ok
}

// everything is c for all queues.
func (d *Door) everything(c Caller) Caller {
	if d.ReadOnly {
		c.Rights &= Read | Bodies | Metrics
	}
	c.Queues = []string{"*"}
	for scope, right := range rightOf {
		if c.Has(right) {
			c.Scopes = append(c.Scopes, scope)
		}
	}
	return c
}

// owner is the user who runs the server, as in ada@build7.
func (d *Door) owner() string {
	_, name, found := strings.Cut(d.Owner, ":")
	if !found {
		return d.Owner
	}
	return name
}
