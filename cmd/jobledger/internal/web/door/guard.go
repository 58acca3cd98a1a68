package door

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"jobledger/commands/remote/wire"
)

// Route is a pattern of [http.ServeMux] with its handler, which returns an error instead of writing it.
type Route struct {
	Pattern string
	Needs   Right // the rights that it needs; [None]: it needs no credential
	Page    bool  // for people: without a credential it leads to the login page
	Streams bool  // its answer lasts until the client goes
	// StreamsIf says of which requests the answer is sent as it is made; nil: as Streams says.
	StreamsIf func(*http.Request) bool
	Queues    bool     // it looks at the queues of the caller; otherwise that must be for all
	MaxBody   int64    // bytes; 0: 4 KiB
	Types     []string // media types of its answers; nil: JSON for the API, and any for others
	Long      bool     // its answer may take 25 s to compute, instead of 5 s: five times as long as another
	Handle    func(w http.ResponseWriter, r *http.Request) error
	Doc       Doc
}

// policy is the Content-Security-Policy of every answer: nothing but this server's own files, no script in a
// page, and no text that a script turns into code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// always are the headers of every answer. Their values are shared, and nothing changes them: Set replaces a
// value, and Add copies it.
var always = http.Header{
	"Content-Security-Policy":      {policy},
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"same-origin"}, // with no-referrer, browsers send no Origin with a form
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cache-Control":                {"no-store"},
}

// Handler returns the handler of every request.
func (d *Door) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		maps.Copy(h, always)
		d.drain.begin()
		defer d.drain.end()
		defer answering(r.Context())()
		begun := time.Now()
		counted := &counter{ResponseWriter: w, status: http.StatusOK, prefix: d.Prefix}
		route := "refused"
		r, ours := d.Prefix.within(r)
		if p := d.refuse(r, ours); p != nil {
			switch p.Status {
			case http.StatusMethodNotAllowed:
				h.Set("Allow", d.allowed(r))
			case http.StatusServiceUnavailable: // the next request is for the server that comes after this one
				h.Set("Connection", "close")
			}
			WriteProblem(counted, p)
		} else {
			d.mux.ServeHTTP(counted, r)
			route = r.Pattern
		}
		d.requests.add(route, counted.status, time.Since(begun))
	})
}

// refuse returns why r gets no further; nil: it does. The host is checked first: a name that an attacker made
// resolve to this host is the same origin to a browser, and such a request may have no header Origin. ours
// says whether r has the prefix of this server.
func (d *Door) refuse(r *http.Request, ours bool) *Problem {
	switch {
	case !d.knows(r.Host):
		return Refusal(http.StatusMisdirectedRequest, "misdirected", "this server is not the host of this request")
	case d.crossOrigin(r):
		return Refusal(http.StatusForbidden, "cross_origin", "a page of another origin made this request")
	case !ours:
		return Refusal(http.StatusNotFound, "no_resource",
			"the addresses of this server begin with "+d.Prefix.At("/"))
	case d.turnsAway(r):
		return errDraining
	case isAlias(r.URL.Path):
		return Refusal(http.StatusNotFound, "no_resource",
			"there is nothing at this address: a part of its path is empty, . or ..")
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !d.takes(r):
		return Refusal(http.StatusMethodNotAllowed, "method", "this address does not take "+r.Method)
	}
	return nil
}

// isAlias reports whether p is another spelling of a path of the API: http.ServeMux would lead there, by a
// page for people.
func isAlias(p string) bool {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean != p &&
		(strings.HasPrefix(p, wire.Root+"/") || strings.HasPrefix(clean, wire.Root+"/"))
}

// takes reports whether there is a route for the method and the path of r.
func (d *Door) takes(r *http.Request) bool {
	_, pattern := d.mux.Handler(r)
	return strings.HasPrefix(pattern, r.Method+" ")
}

// allowed are the methods that the path of r takes.
func (d *Door) allowed(r *http.Request) string {
	methods := "GET, HEAD"
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		if other.Method = method; d.takes(other) {
			methods += ", " + method
		}
	}
	return methods
}

// crossOrigin reports whether a browser says that a page of another origin made r. A link from another site
// may be followed if it only reads; the browser sends no cookie with it.
func (d *Door) crossOrigin(r *http.Request) bool {
	if new(http.CrossOriginProtection).Check(r) != nil {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != d.OriginOf(r) {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// serveRoute checks the credential that rt needs, and answers.
func (d *Door) serveRoute(rt Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt := rt
		if rt.Pattern == "/" { // nothing is there: people get a page that says so
			_, rt.Page = Likes(r, "text/html")
		}
		var caller Caller
		var known bool
		var err error
		if rt.Needs != None {
			if caller, known, err = d.Caller(r); known && err == nil {
				proves(r.Context())
			}
		}
		switch {
		case rt.Needs == None:
		case err != nil:
			if r.Header["Authorization"] == nil { // a client that has another certificate by now connects again
				w.Header().Set("Connection", "close")
			}
			WriteProblem(w, d.ProblemOf(err))
			return
		case !known && rt.Page && r.Method == http.MethodPost:
			r.Body = http.MaxBytesReader(w, r.Body, max(rt.MaxBody, maxForm))
			if r.ParseForm() == nil && r.PostForm.Get("reason") != "" { // what was typed is to be sent again
				d.answerProblem(w, r, rt, errEnded)
				return
			}
			d.SeeOther(w, r, "/login")
			return
		case !known && rt.Page && d.askAgain(w, r):
			return
		case !known && rt.Page:
			d.SeeOther(w, r, "/login"+wayBack(r))
			return
		case !known:
			WriteProblem(w, Refusal(http.StatusUnauthorized, "unauthenticated",
				d.wanted()))
			return
		case caller.ID != "" && !d.limits.Allow(caller.ID, d.Rate, d.Now()):
			WriteProblem(w, Refusal(http.StatusTooManyRequests, "rate", "too many requests with this token"))
			return
		case caller.Session && rt.Needs&Erase != 0 && !caller.Has(Erase) && !d.ReadOnly:
			d.answerProblem(w, r, rt, errEraseInSession)
			return
		case !caller.Has(rt.Needs), !rt.Queues && !caller.AllQueues():
			d.answerProblem(w, r, rt, errForbidden)
			return
		}
		if err := rt.acceptable(r); err != nil {
			d.answerProblem(w, r, rt, err)
			return
		}
		ctx := context.WithValue(r.Context(), callerKey{}, caller)
		streams := rt.Streams || rt.StreamsIf != nil && rt.StreamsIf(r)
		if !streams {
			var cancel context.CancelFunc
			within := d.AskTimeout
			if rt.Long {
				within *= longFactor
			}
			ctx, cancel = context.WithTimeout(ctx, within)
			defer cancel()
		}
		r.Body = http.MaxBytesReader(w, r.Body, max(rt.MaxBody, maxForm))
		conn := w
		var whole *reply
		if !streams && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			whole = &reply{ResponseWriter: w}
			w = whole
		}
		asked := r.WithContext(ctx)
		err = rt.Handle(w, asked)
		switch {
		case err == nil: // answered
		case r.Context().Err() != nil: // the client has gone, or at least sends no more
			d.answerLate(conn, err)
			return
		default:
			d.answerProblem(w, asked, rt, err)
		}
		if whole != nil {
			whole.finish(r)
		}
	})
}

// wanted says which credentials there are.
func (d *Door) wanted() string {
	if d.ClientCA != nil {
		return "this needs a token, a client certificate, of which there is none, or a session, which a login " +
			"link begins"
	}
	return "this needs a token, a session, which a login link begins, or the Unix socket"
}

// errUnanswered means that a request ended before its answer. It may still be read, by a client that closed
// its own half of the connection only.
var errUnanswered = Refusal(http.StatusRequestTimeout, "slow",
	"the connection ended before there was an answer")

// answerLate answers a request whose client has gone: without an answer, it would get one that says 200.
func (d *Door) answerLate(w http.ResponseWriter, err error) {
	if c, ok := w.(*counter); ok && c.wrote {
		return
	}
	p := errUnanswered
	errors.As(err, &p)
	WriteProblem(w, p)
}

// errEraseInSession means that a session may not erase, because the server runs without --allow erase.
var errEraseInSession = Refusal(http.StatusForbidden, "forbidden",
	"anyone who logs in by a link may erase only where the server was started with --allow erase")

// ErrNoBodies means that a caller may not see the payloads and results that it asks for.
var ErrNoBodies = Refusal(http.StatusForbidden, "forbidden", "this credential has no right to payloads")

// errEnded means that a form was sent without a session.
var errEnded = Refusal(http.StatusUnauthorized, "unauthenticated",
	"your session has ended, and nothing was changed: log in by another tab, and send this again")

// maxNext is the length of an address that the login leads back to.
const maxNext = 2000

// wayBack is the end of the address of the login page that leads back to r; "": that is the first page.
func wayBack(r *http.Request) string {
	to := r.URL.RequestURI()
	if to == "/" || NextOf(to) == "" || r.Pattern == "/" {
		return ""
	}
	return "?" + url.Values{"next": {to}}.Encode()
}

// NextOf is the path of this server to which a login that asks for text leads; "": text is not such a path.
func NextOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxNext || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "//") || strings.HasPrefix(path.Clean(u.Path), "/login") ||
		strings.ContainsAny(text, "\\\r\n\t") {
		return ""
	}
	return text
}

// errForbidden means that a caller has no right to what it asked for.
var errForbidden = Refusal(http.StatusForbidden, "forbidden", "this credential has no right to do this")

// answerProblem answers with err: for people as a page.
func (d *Door) answerProblem(w http.ResponseWriter, r *http.Request, rt Route, err error) {
	p := d.ProblemOf(err)
	if rt.Page && d.ShowProblem != nil {
		answer := &reply{ResponseWriter: w}
		if err := d.ShowProblem(answer, r, p); err == nil {
			sendProblem(w, p, answer.body.Bytes())
			return
		}
		d.Report("page problem: %v", err)
	}
	WriteProblem(w, p)
}

// counter remembers the status of an answer, and whether it has begun.
type counter struct {
	http.ResponseWriter
	status int
	wrote  bool
	prefix Prefix
}

func (c *counter) WriteHeader(status int) {
	if status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect ||
		status == http.StatusPermanentRedirect { // by http.ServeMux, of a path with //
		c.Header().Set("Location", c.prefix.At(c.Header().Get("Location")))
	}
	c.status, c.wrote = status, true
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(p []byte) (int, error) {
	c.wrote = true
	return c.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// knows reports whether this server can be reached by the name host.
func (d *Door) knows(host string) bool {
	return d.hosts == nil || d.hosts[strings.ToLower(host)] || d.Certificate != nil && d.Certificate.isFor(host)
}
