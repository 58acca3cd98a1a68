package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// access says which credential a route needs.
type access int

const (
	withCredential access = iota // a session, or a Unix socket of the same user
	streaming                    // the same, and the answer lasts until the client goes
	open                         // none
)

// route is a pattern of [http.ServeMux] with its handler, which returns an error instead of writing it.
type route struct {
	pattern string
	access  access
	page    bool // for people: without a credential it leads to the login page
	handle  func(w http.ResponseWriter, r *http.Request) error
}

// policy is the Content-Security-Policy of every answer: nothing but this server's own files, no script in a
// page, and no text that a script turns into code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// allRoutes are the routes of a server; a test walks them.
func (s *Server) allRoutes() []route {
	return append(append([]route{
		{"GET /healthz", open, false, s.healthz},
		{"GET /readyz", open, false, s.readyz},
		{"GET /login", open, true, s.loginPage},
		{"POST /login", open, true, s.login},
		{"POST /login/link", open, true, s.newLink},
		{"GET /assets/{name}", open, false, s.asset},
		{"POST /logout", withCredential, true, s.logout},
		{"GET /metrics", withCredential, false, s.serveMetrics},
		{"GET " + apiRoot + "/openapi.json", withCredential, false, s.openAPI},
		{"GET " + apiRoot + "/events/stream", streaming, false, s.streamEvents},
		{"GET /tail/stream", streaming, false, s.streamPage},
		{"GET " + apiRoot + "/jobs/{job}/payload", withCredential, false, s.payload},
		{"GET " + apiRoot + "/jobs/{job}/result", withCredential, false, s.result},
		{"/", withCredential, false, func(http.ResponseWriter, *http.Request) error {
			return refusal(http.StatusNotFound, "no_resource", "there is nothing at this address")
		}},
	}, s.pageRoutes()...), s.apiRoutes()...)
}

// Handler returns the handler of every request.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		route := "refused"
		if p := s.refuse(r); p != nil {
			if p.Status == http.StatusMethodNotAllowed {
				h.Set("Allow", "GET, HEAD")
			}
			writeProblem(counted, p)
		} else {
			_, route = s.mux.Handler(r)
			s.mux.ServeHTTP(counted, r)
		}
		s.requests.add(route, counted.status)
	})
}

// refuse returns why r gets no further; nil: it does. The host is checked first: a name that an attacker made
// resolve to this host is the same origin to a browser, and such a request may have no header Origin.
func (s *Server) refuse(r *http.Request) *problem {
	switch {
	case s.hosts != nil && !s.hosts[strings.ToLower(r.Host)]:
		return refusal(http.StatusMisdirectedRequest, "misdirected", "this server is not the host of this request")
	case crossOrigin(r):
		return refusal(http.StatusForbidden, "cross_origin", "a page of another origin made this request")
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !s.mayPost(r):
		return refusal(http.StatusMethodNotAllowed, "method", "this address does not take "+r.Method)
	}
	return nil
}

// mayPost reports whether r is a POST to a route that takes one.
func (s *Server) mayPost(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	return r.Method == http.MethodPost && strings.HasPrefix(pattern, http.MethodPost+" ")
}

// crossOrigin reports whether a browser says that a page of another origin made r. A link that the user
// follows is fine where it only reads; the cookie does not come with it.
func crossOrigin(r *http.Request) bool {
	if new(http.CrossOriginProtection).Check(r) != nil {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// serveRoute checks the credential that rt needs, and answers.
func (s *Server) serveRoute(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rt.access != open && !s.admits(r) {
			if rt.page {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
				return
			}
			writeProblem(w, refusal(http.StatusUnauthorized, "unauthenticated",
				"this needs a session, which a login link begins, or the Unix socket"))
			return
		}
		ctx := r.Context()
		if rt.access != streaming {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, askTimeout)
			defer cancel()
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		var whole *reply
		if rt.access != streaming && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			whole = &reply{ResponseWriter: w}
			w = whole
		}
		err := rt.handle(w, r.WithContext(ctx))
		switch {
		case err == nil || r.Context().Err() != nil: // answered, or the client has gone
		case rt.page:
			s.showProblem(w, r, s.problemOf(err))
		default:
			writeProblem(w, s.problemOf(err))
		}
		if whole != nil && r.Context().Err() == nil {
			whole.finish(r)
		}
	})
}

// admits reports whether r has a credential.
func (s *Server) admits(r *http.Request) bool {
	return samePeer(r) || s.sessions.holds(r, s.Now())
}

// counter remembers the status of an answer.
type counter struct {
	http.ResponseWriter
	status int
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// requests counts answers.
type requests struct {
	mu sync.Mutex
	n  map[requestKind]int64
}

// requestKind is what answers are counted by.
type requestKind struct {
	route  string
	status int
}

func (q *requests) add(route string, status int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == nil {
		q.n = make(map[requestKind]int64)
	}
	q.n[requestKind{route, status}]++
}

// healthz answers that the process does.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	return plain(w, "ok\n")
}

// errDraining means that the server is ending.
var errDraining = refusal(http.StatusServiceUnavailable, "draining", "the server is ending")

// readyz answers whether requests can be answered now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if s.draining.Load() {
		return errDraining
	}
	_, err := s.tail(r.Context())
	if err != nil {
		p := s.problemOf(err)
		return refusal(http.StatusServiceUnavailable, p.Code, "the ledger cannot be read now")
	}
	return plain(w, "ready\n")
}

func plain(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := w.Write([]byte(text)); err != nil {
		return errors.Join(context.Canceled, err)
	}
	return nil
}
