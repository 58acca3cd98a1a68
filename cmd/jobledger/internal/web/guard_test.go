package web

import (
	"net/http"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// The boot of a process and the token of a claim, in requests.
const someBoot, someToken = "01KDXYZAF8000000000000000B", "01KDXYZAF8000000000000000A"

// requestOf is a request for a route: its pattern with something in each of its variables.
func (s *served) requestOf(rt door.Route) (method, path string) {
	method, path, found := strings.Cut(rt.Pattern, " ")
	if !found {
		method, path = "GET", "/nowhere"
	}
	if rt.Streams && method == "GET" && strings.HasSuffix(path, "/stream") {
		method = "HEAD" // the answer to GET has no end
	}
	for _, part := range strings.Split(path, "/") {
		if name, variable := strings.CutPrefix(part, "{"); variable {
			value := "1"
			switch strings.TrimSuffix(name, "}") {
			case "job":
				value = string(s.job)
			case "$":
				value = ""
			case "boot":
				value = someBoot
			case "token":
				value = someToken
			case "stream":
				value = "out"
			case "name":
				value = "style.css"
			case "queue":
				value = "mail"
			}
			path = strings.Replace(path, part, value, 1)
		}
	}
	return method, path
}

// No route has an exception for pages of other origins and names of other hosts, whatever the credential, and
// none takes an address for a credential. Nothing is recorded.
func TestGuardHoldsForEveryRoute(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	token := s.create("all", []string{"*"}, access.Scopes...)
	for _, rt := range s.door.Routes() {
		method, path := s.requestOf(rt)
		for name, credential := range map[string][]string{"session": {"Cookie", cookie},
			"token": {"Authorization", token}} {
			for _, c := range []struct {
				want   int
				header []string
			}{
				{http.StatusForbidden, []string{"Origin", "http://evil.example"}},
				{http.StatusForbidden, []string{"Origin", "null"}},
				{http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}},
				{http.StatusMisdirectedRequest, []string{"Host", "evil.example"}},
				{http.StatusMisdirectedRequest, []string{"Host", "evil.example", "Origin", "http://evil.example",
					"Sec-Fetch-Site", "same-origin"}},
			} {
				answer, _ := s.do(method, path, nil, append(c.header, credential...)...)
				if answer.StatusCode != c.want {
					t.Errorf("%s with a %s and %v: %s, want %d", rt.Pattern, name, c.header, answer.Status, c.want)
				}
			}
		}
		answer, _ := s.do(method, path, nil, "X-Forwarded-For", "127.0.0.1", "X-Real-IP", "127.0.0.1", "Forwarded",
			"for=127.0.0.1", "X-Forwarded-User", "ada")
		if status := answer.StatusCode; rt.Needs != door.None && status != http.StatusUnauthorized &&
			!strings.HasPrefix(answer.Header.Get("Location"), "/login") {
			t.Errorf("%s from the loopback interface, without a credential: %s", rt.Pattern, answer.Status)
		}
	}
	if answer, _ := s.do("GET", api.Root+"/status", nil, "Cookie", cookie); answer.StatusCode != http.StatusOK {
		t.Errorf("the session has ended: %s", answer.Status)
	}
	wantOneEvent(t, s.Store)
}

// wantOneEvent checks that nothing was written to a ledger of one event.
func wantOneEvent(t *testing.T, store *ledger.Store) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if tail != 1 {
			t.Errorf("the ledger ends at %d", tail)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	commandstest.Verify(t, store)
}
