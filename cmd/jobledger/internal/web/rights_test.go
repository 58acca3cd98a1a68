package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
)

// scopesOf is what each route needs; "": nothing. A route without a row fails the test.
var scopesOf = map[string]string{
	"GET /healthz": "", "GET /readyz": "", "GET /login": "", "POST /login": "", "POST /login/link": "",
	"GET /assets/{name}": "", "GET /metrics": "metrics",
	"GET " + api.Root + "/openapi.json": "read", "GET " + api.Root + "/events/stream": "read",
	"GET " + api.Root + "/status": "read", "GET " + api.Root + "/queues": "read",
	"GET " + api.Root + "/workers": "read", "GET " + api.Root + "/jobs": "read",
	"GET " + api.Root + "/jobs/{job}": "read", "GET " + api.Root + "/jobs/{job}/events": "read",
	"GET " + api.Root + "/jobs/{job}/why": "read", "GET " + api.Root + "/events": "read",
	"GET " + api.Root + "/ledger": "read", "GET " + api.Root + "/queues/{queue}": "read",
	"GET " + api.Root + "/events/{pos}": "read", "GET " + api.Root + "/attempts": "read",
	"GET " + api.Root + "/jobs/{job}/attempts": "read", "GET " + api.Root + "/jobs/{job}/owner": "read",
	"GET " + api.Root + "/export": "read", "GET " + api.Root + "/depth": "read",
	"GET " + api.Root + "/jobs/{job}/logs/{attempt}/{stream}": "read bodies",
	"GET " + api.Root + "/jobs/{job}/payload":                 "read bodies",
	"GET " + api.Root + "/jobs/{job}/result":                  "read bodies",
	"POST " + api.Root + "/jobs":                              "enqueue",
	"PUT " + api.Root + "/jobs/{job}":                         "enqueue",
	"POST " + api.Root + "/queues/{queue}/jobs":               "enqueue",
	"POST " + api.Root + "/claims":                            "work", "GET " + api.Root + "/claims": "work",
	"GET " + api.Root + "/claims/ready":                      "work",
	"PUT " + api.Root + "/jobs/{job}/claims/{token}":         "work",
	"PUT " + api.Root + "/jobs/{job}/claims/{token}/process": "work",
	"POST " + api.Root + "/heartbeats":                       "work",
	"PUT " + api.Root + "/workers/{boot}":                    "work",
	"DELETE " + api.Root + "/workers/{boot}":                 "work",
	"GET /{$}":                                               "read",
	"GET /jobs":                                              "read", "GET /jobs/{job}": "read",
	"GET /events": "read", "GET /tail": "read",
	"GET " + api.Root + "/lanes": "read", "GET " + api.Root + "/moments": "read",
	"GET " + api.Root + "/series": "read", "GET " + api.Root + "/failures": "read",
	"GET " + api.Root + "/diff": "read", "GET " + api.Root + "/integrity": "read",
	"GET " + api.Root + "/incident": "read", "GET /events/{pos}": "read", "GET /lanes": "read",
	"GET /failures": "read", "GET /ledgers": "read", "GET /workers": "read", "GET /workers/{worker}": "read",
	"GET /queues/{queue}": "read", "GET /diff": "read", "GET /incident": "read", "GET /integrity": "read",
	"POST /integrity":                         "read operate",
	"POST " + api.Root + "/integrity/checks":  "read operate",
	"POST " + api.Root + "/jobs/{job}/cancel": "operate", "POST " + api.Root + "/jobs/{job}/retry": "operate",
	"POST " + api.Root + "/jobs/{job}/reschedule": "operate", "POST " + api.Root + "/jobs/{job}/erase": "erase",
	"POST " + api.Root + "/queues/{queue}/pause":  "operate",
	"POST " + api.Root + "/queues/{queue}/resume": "operate", "POST " + api.Root + "/acts": "operate",
	"POST /acts": "read operate", "POST /jobs/{job}/cancel": "read operate",
	"POST /jobs/{job}/retry": "read operate", "POST /jobs/{job}/reschedule": "read operate",
	"POST /jobs/{job}/erase": "read erase", "POST /queues/{queue}/pause": "read operate",
	"POST /queues/{queue}/resume": "read operate",
	"GET /tail/stream":            "read", "POST /logout": "read", "/": "read",
}

// create makes a token.
func (s *served) create(name string, queues []string, scopes ...access.Scope) (header string) {
	s.t.Helper()
	token, _, err := access.Create(s.access, access.Request{Name: name, Scopes: scopes, Queues: queues},
		time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return "Bearer " + token
}

// TestRightsOfEveryRoute walks every route with every kind of credential: none, a session, tokens with each
// scope alone, with all, for another queue, and a token next to the cookie of a session.
func TestRightsOfEveryRoute(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	tokens := map[access.Scope]string{}
	for _, scope := range access.Scopes {
		tokens[scope] = s.create(string(scope), []string{"*"}, scope)
	}
	all := s.create("all", []string{"*"}, access.Scopes...)
	other := s.create("other", []string{"other"}, access.Scopes...)
	session := "read bodies metrics operate erase"
	for _, rt := range s.door.Routes() {
		scopes, known := scopesOf[rt.Pattern]
		if !known {
			t.Errorf("the route %s has no row in this test", rt.Pattern)
			continue
		}
		method, path, found := strings.Cut(rt.Pattern, " ")
		if !found {
			method, path = "GET", "/nowhere"
		}
		ofQueue := strings.Contains(path, "{job}") || strings.Contains(path, "{queue}")
		path = strings.NewReplacer("{$}", "", "{job}", string(s.job), "{name}", "style.css", "{queue}", "mail",
			"{token}", "01KDXYZAF8000000000000000A", "{boot}", "01KDXYZAF8000000000000000B",
			"{pos}", "1", "{worker}", "alpha", "{attempt}", "1", "{stream}", "out").Replace(path)
		if rt.Streams && method == "GET" && strings.HasSuffix(path, "/stream") {
			method = "HEAD" // the answer to GET has no end
		}
		let := func(header ...string) bool {
			answer, body := s.do(method, path, nil, header...)
			status := answer.StatusCode
			toLogin := status == http.StatusSeeOther && answer.Header.Get("Location") == "/login" &&
				!strings.HasPrefix(path, "/log")
			if status == http.StatusTooManyRequests && strings.Contains(body, "token") {
				t.Fatalf("%s: %s", rt.Pattern, body)
			}
			return status != http.StatusUnauthorized && status != http.StatusForbidden && !toLogin
		}
		fits := func(have string) bool {
			for _, one := range strings.Fields(scopes) {
				if !strings.Contains(" "+have+" ", " "+one+" ") {
					return false
				}
			}
			return true
		}
		if path == "/logout" || rt.Pattern == "POST /login" {
			continue // they end and begin sessions: TestLoginLinkWorksOnce has them
		}
		if got := let(); got != (scopes == "") {
			t.Errorf("%s without a credential: let in %t", rt.Pattern, got)
		}
		if got := let("Cookie", cookie); got != fits(session) {
			t.Errorf("%s with a session: let in %t", rt.Pattern, got)
		}
		for scope, token := range tokens {
			if got := let("Authorization", token); got != fits(string(scope)) {
				t.Errorf("%s with %s only: let in %t", rt.Pattern, scope, got)
			}
		}
		if !let("Authorization", all) {
			t.Errorf("%s with all scopes: refused", rt.Pattern)
		}
		if scopes == "" {
			continue
		}
		if let("Authorization", tokens[access.Admin], "Cookie", cookie) {
			t.Errorf("%s with a token, next to a cookie: the cookie was looked at", rt.Pattern)
		}
		switch answer, body := s.do(method, path, nil, "Authorization", other); {
		case !rt.Queues && answer.StatusCode != http.StatusForbidden,
			rt.Queues && ofQueue && method != "POST" && answer.StatusCode == http.StatusOK,
			strings.Contains(body, `"queue":"mail"`):
			t.Errorf("%s with a token for another queue: %s %s", rt.Pattern, answer.Status, body)
		}
	}
}

func TestTokensAreRefused(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	good := s.create("a", []string{"*"}, access.Read)
	cookie, _ := s.login()
	path := api.Root + "/status"
	for _, header := range []string{"", "Basic YTpi", "Bearer", "Bearer x"} {
		answer, body := s.do("GET", path, nil, "Authorization", header, "Cookie", cookie)
		if answer.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(answer.Header.Get("WWW-Authenticate"),
			"Bearer") || !strings.Contains(body, `"code":"unauthenticated"`) {
			t.Errorf("%q: %s %s", header, answer.Status, body)
		}
	}
	for name, where := range map[string]string{"in the address": path + "?token=" + good[7:],
		"as a user": path} {
		header := []string{}
		if name == "as a user" {
			header = []string{"Cookie", "token=" + good[7:]}
		}
		if answer, _ := s.do("GET", where, nil, header...); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("a token %s: %s", name, answer.Status)
		}
	}
	if answer, _ := s.do("GET", path, nil, "Authorization", "Bearer y"); answer.StatusCode != 401 {
		t.Errorf("the fifth wrong token: %s", answer.Status)
	}
	answer, _ := s.do("GET", path, nil, "Authorization", "Bearer z")
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("the sixth wrong token in a minute: %s", answer.Status)
	}
	if answer, _ := s.do("GET", path, nil, "Authorization", good); answer.StatusCode != http.StatusOK {
		t.Errorf("a valid token from there: %s", answer.Status)
	}
	if answer, _ := s.do("GET", path, nil, "Authorization", good, "Origin", "http://evil.example"); answer.
		StatusCode != http.StatusForbidden {
		t.Errorf("a page of another origin with a token: %s", answer.Status)
	}
	if _, err := access.Revoke(s.access, "a", time.Now()); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.do("GET", path, nil, "Authorization", good); answer.StatusCode/100 != 4 {
		t.Errorf("a revoked token: %s", answer.Status)
	}
}
