package web

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// What a token for some queues needs to be let in, besides its scopes.
const (
	allQueues = "all"   // it is for all queues
	anyQueue  = "any"   // nothing: the answer has, and changes, nothing of other queues
	inPath    = "path"  // the job, the event or the queue in the path is one of its own
	inQuery   = "query" // the parameter queue names one of its own
	inBody    = "body"  // what the request is about, in its body or parameters, is of its own
)

// anyScope stands for the scopes of a route that any credential is let in to.
const anyScope = "any"

// rightsOf is what each route needs; without scopes: nothing. A route without a row fails the test.
var rightsOf = map[string]struct{ scopes, queues string }{
	"GET /healthz":                                                {"", ""},
	"GET /readyz":                                                 {"", ""},
	"GET /login":                                                  {"", ""},
	"POST /login":                                                 {"", ""},
	"POST /login/link":                                            {"", ""},
	"GET /assets/{name}":                                          {"", ""},
	"GET /metrics":                                                {"metrics", allQueues},
	"GET " + api.Root + "/openapi.json":                           {"read", anyQueue},
	"GET " + api.Root + "/events/stream":                          {"read", inQuery},
	"GET " + api.Root + "/status":                                 {"read", allQueues},
	"GET " + api.Root + "/queues":                                 {"read", allQueues},
	"GET " + api.Root + "/workers":                                {"read", allQueues},
	"GET " + api.Root + "/jobs":                                   {"read", inQuery},
	"GET " + api.Root + "/jobs/{job}":                             {"read", inPath},
	"GET " + api.Root + "/jobs/{job}/events":                      {"read", inPath},
	"GET " + api.Root + "/jobs/{job}/why":                         {"read", inPath},
	"GET " + api.Root + "/jobs/{job}/dependencies":                {"read", inPath},
	"GET " + api.Root + "/events":                                 {"read", inQuery},
	"GET " + api.Root + "/ledger":                                 {"read", anyQueue},
	"GET " + api.Root + "/queues/{queue}":                         {"read", inPath},
	"GET " + api.Root + "/events/{pos}":                           {"read", inPath},
	"GET " + api.Root + "/attempts":                               {"read", inQuery},
	"GET " + api.Root + "/jobs/{job}/attempts":                    {"read", inPath},
	"GET " + api.Root + "/jobs/{job}/owner":                       {"read", inPath},
	"GET " + api.Root + "/export":                                 {"read", allQueues},
	"GET " + api.Root + "/depth":                                  {"read", inQuery},
	"GET " + api.Root + "/jobs/{job}/logs/{attempt}/{stream}":     {"read bodies", inPath},
	"GET " + api.Root + "/jobs/{job}/payload":                     {"read bodies", inPath},
	"GET " + api.Root + "/jobs/{job}/result":                      {"read bodies", inPath},
	"POST " + api.Root + "/jobs":                                  {"enqueue", inBody},
	"PUT " + api.Root + "/jobs/{job}":                             {"enqueue", inPath},
	"POST " + api.Root + "/queues/{queue}/jobs":                   {"enqueue", inPath},
	"POST " + api.Root + "/claims":                                {"work", inBody},
	"GET " + api.Root + "/claims":                                 {"work", anyQueue},
	"GET " + api.Root + "/claims/ready":                           {"work", inBody},
	"PUT " + api.Root + "/jobs/{job}/claims/{token}":              {"work", inPath},
	"PUT " + api.Root + "/jobs/{job}/claims/{token}/process":      {"work", inPath},
	"POST " + api.Root + "/heartbeats":                            {"work", anyQueue},
	"PUT " + api.Root + "/workers/{boot}":                         {"work", inBody},
	"DELETE " + api.Root + "/workers/{boot}":                      {"work", anyQueue},
	"GET /{$}":                                                    {"read", allQueues},
	"GET /jobs":                                                   {"read", allQueues},
	"GET /jobs/{job}":                                             {"read", allQueues},
	"GET /events":                                                 {"read", allQueues},
	"GET /tail":                                                   {"read", allQueues},
	"GET " + api.Root + "/lanes":                                  {"read", inQuery},
	"GET " + api.Root + "/moments":                                {"read", allQueues},
	"GET " + api.Root + "/series":                                 {"read", inQuery},
	"GET " + api.Root + "/failures":                               {"read", inQuery},
	"GET " + api.Root + "/diff":                                   {"read", allQueues},
	"GET " + api.Root + "/reports/{report}":                       {"read", allQueues},
	"GET " + api.Root + "/integrity":                              {"read", allQueues},
	"GET " + api.Root + "/incident":                               {"read", allQueues},
	"GET /events/{pos}":                                           {"read", allQueues},
	"GET /lanes":                                                  {"read", allQueues},
	"GET /failures":                                               {"read", allQueues},
	"GET /api":                                                    {anyScope, anyQueue},
	"GET /zone":                                                   {anyScope, anyQueue},
	"POST /zone":                                                  {anyScope, anyQueue},
	"POST /look":                                                  {anyScope, anyQueue},
	"GET /ledgers":                                                {"read", allQueues},
	"GET /workers":                                                {"read", allQueues},
	"GET /workers/{worker}":                                       {"read", allQueues},
	"GET /queues/{queue}":                                         {"read", allQueues},
	"GET /diff":                                                   {"read", allQueues},
	"GET /incident":                                               {"read", allQueues},
	"GET /integrity":                                              {"read", allQueues},
	"POST /integrity":                                             {"read operate", allQueues},
	"POST " + api.Root + "/integrity/checks":                      {"read operate", allQueues},
	"POST " + api.Root + "/jobs/{job}/cancel":                     {"operate", inPath},
	"POST " + api.Root + "/jobs/{job}/retry":                      {"operate", inPath},
	"POST " + api.Root + "/jobs/{job}/reschedule":                 {"operate", inPath},
	"POST " + api.Root + "/jobs/{job}/unblock":                    {"operate", inPath},
	"POST " + api.Root + "/jobs/{job}/erase":                      {"erase", inPath},
	"POST " + api.Root + "/queues/{queue}/pause":                  {"operate", inPath},
	"POST " + api.Root + "/queues/{queue}/resume":                 {"operate", inPath},
	"GET " + api.Root + "/limits":                                 {"read", allQueues},
	"GET " + api.Root + "/defaults":                               {"read", allQueues},
	"GET " + api.Root + "/queues/{queue}/limit":                   {"read", inPath},
	"PUT " + api.Root + "/queues/{queue}/limit":                   {"operate", inPath},
	"DELETE " + api.Root + "/queues/{queue}/limit":                {"operate", inPath},
	"PUT " + api.Root + "/queues/{queue}/groups/{group}/limit":    {"operate", inPath},
	"DELETE " + api.Root + "/queues/{queue}/groups/{group}/limit": {"operate", inPath},
	"GET " + api.Root + "/queues/{queue}/defaults":                {"read", inPath},
	"PUT " + api.Root + "/queues/{queue}/defaults":                {"operate", inPath},
	"DELETE " + api.Root + "/queues/{queue}/defaults":             {"operate", inPath},
	"GET /queues":                                                 {"read", allQueues},
	"GET /queues/{queue}/limit":                                   {"read operate", allQueues},
	"POST /queues/{queue}/limit":                                  {"read operate", allQueues},
	"GET /queues/{queue}/defaults":                                {"read operate", allQueues},
	"POST /queues/{queue}/defaults":                               {"read operate", allQueues},
	"POST " + api.Root + "/acts":                                  {"operate", anyQueue},
	"POST /acts":                                                  {"read operate", allQueues},
	"GET /acts":                                                   {"read operate", allQueues},
	"GET /acts/{pos}":                                             {"read", allQueues},
	"POST /jobs/{job}/cancel":                                     {"read operate", allQueues},
	"POST /jobs/{job}/retry":                                      {"read operate", allQueues},
	"POST /jobs/{job}/reschedule":                                 {"read operate", allQueues},
	"POST /jobs/{job}/unblock":                                    {"read operate", allQueues},
	"POST /jobs/{job}/erase":                                      {"read erase", allQueues},
	"POST /queues/{queue}/pause":                                  {"read operate", allQueues},
	"POST /queues/{queue}/resume":                                 {"read operate", allQueues},
	"GET " + api.Root + "/schedules":                              {"read", allQueues},
	"GET " + api.Root + "/schedules/{schedule}":                   {"read", allQueues},
	"GET " + api.Root + "/schedules/{schedule}/ticks":             {"read", allQueues},
	"PUT " + api.Root + "/schedules/{schedule}":                   {"operate", allQueues},
	"POST " + api.Root + "/schedules/preview":                     {"read", anyQueue},
	"POST " + api.Root + "/schedules/{schedule}/run":              {"operate", allQueues},
	"POST " + api.Root + "/schedules/{schedule}/pause":            {"operate", allQueues},
	"POST " + api.Root + "/schedules/{schedule}/resume":           {"operate", allQueues},
	"POST " + api.Root + "/schedules/{schedule}/remove":           {"operate", allQueues},
	"GET /schedules":                                              {"read", allQueues},
	"GET /schedules/{schedule}":                                   {"read", allQueues},
	"GET /new/schedule":                                           {"read operate", allQueues},
	"POST /new/schedule":                                          {"read operate", allQueues},
	"GET /schedules/{schedule}/edit":                              {"read operate", allQueues},
	"POST /schedules/{schedule}/edit":                             {"read operate", allQueues},
	"POST /schedules/{schedule}/run":                              {"read operate", allQueues},
	"POST /schedules/{schedule}/pause":                            {"read operate", allQueues},
	"POST /schedules/{schedule}/resume":                           {"read operate", allQueues},
	"POST /schedules/{schedule}/remove":                           {"read operate", allQueues},
	"GET /tail/stream":                                            {"read", allQueues},
	"POST /logout":                                                {"read", allQueues},
	"/":                                                           {"read", allQueues},
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

// bodyOf is the body of a request for a route that is about the queue, or about the job of s.
func (s *served) bodyOf(pattern, queue string) string {
	job := string(s.job)
	return map[string]string{
		"POST " + api.Root + "/jobs":                `{"queue": "` + queue + `", "payload": "a"}`,
		"PUT " + api.Root + "/jobs/{job}":           `{"queue": "mail", "payload": "a"}`,
		"POST " + api.Root + "/queues/{queue}/jobs": `a`,
		"POST " + api.Root + "/claims": `{"queues": ["` + queue + `"], "worker": "w", "boot": "` + someBoot +
			`", "tokens": ["` + someToken + `"]}`,
		"PUT " + api.Root + "/jobs/{job}/claims/{token}": `{"outcome": "released"}`,
		"PUT " + api.Root + "/jobs/{job}/claims/{token}/process": `{"worker": "w", "boot": "` + someBoot +
			`"}`,
		"POST " + api.Root + "/heartbeats": `{"boot": "` + someBoot + `", "claims": [{"job": "` + job +
			`", "token": "` + someToken + `"}]}`,
		"PUT " + api.Root + "/workers/{boot}":                      `{"worker": "w", "queues": ["` + queue + `"]}`,
		"POST " + api.Root + "/jobs/{job}/cancel":                  `{"reason": "r"}`,
		"POST " + api.Root + "/jobs/{job}/retry":                   `{"reason": "r"}`,
		"POST " + api.Root + "/jobs/{job}/reschedule":              `{"reason": "r", "priority": 1}`,
		"POST " + api.Root + "/jobs/{job}/unblock":                 `{"reason": "r"}`,
		"POST " + api.Root + "/jobs/{job}/erase":                   `{"reason": "r"}`,
		"POST " + api.Root + "/queues/{queue}/pause":               `{"reason": "r"}`,
		"PUT " + api.Root + "/queues/{queue}/limit":                `{"reason": "r", "running": 100}`,
		"PUT " + api.Root + "/queues/{queue}/groups/{group}/limit": `{"reason": "r", "running": 100}`,
		"PUT " + api.Root + "/queues/{queue}/defaults":             `{"reason": "r", "max_attempts": 3}`,
		"POST " + api.Root + "/queues/{queue}/resume":              `{"reason": "r"}`,
		"POST " + api.Root + "/acts": `{"act": "cancel", "filter": {"queue": ["` + queue +
			`"], "state": ["queued"]}, "at": "pos:1", "reason": "r", "dry_run": true}`,
	}[pattern]
}

// credentialed is one kind of credential, and what it permits.
type credentialed struct {
	name   string
	header []string
	scopes string
	queues string // "*", mail, which is that of the job of s, or other; "": no credential
}

// TestRightsOfEveryRoute walks every route with every kind of credential: none, a session, the user of the
// server at the other end of a Unix socket, and tokens: with each scope alone and with all, for all queues,
// for that of the job and for another one, and next to the cookie of a session.
func TestRightsOfEveryRoute(t *testing.T) {
	t.Parallel()
	everything := "read bodies enqueue work operate erase metrics admin"
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	credentials := []credentialed{{name: "no credential"},
		{"a session", []string{"Cookie", cookie}, "read bodies metrics operate", "*"}}
	for _, scope := range append(access.Scopes, "") {
		scopes, of := string(scope), []access.Scope{scope}
		if scope == "" {
			scopes, of = everything, access.Scopes
		}
		for queue, pattern := range map[string]string{"*": "*", "mail": "mai*", "other": "other"} {
			if scope != "" && queue != "*" && !ledgertest.All() {
				continue
			}
			token := s.create(fmt.Sprintf("%s.%d", scope, len(credentials)), []string{pattern}, of...)
			credentials = append(credentials, credentialed{"a token for " + scopes + " of " + pattern,
				[]string{"Authorization", token}, scopes, queue})
		}
	}
	admin := s.create("admin.only", []string{"*"}, access.Admin)
	credentials = append(credentials, credentialed{"a token next to a cookie",
		[]string{"Authorization", admin, "Cookie", cookie}, "admin", "*"})
	s.walkRights(credentials)
	if runtime.GOOS == "linux" {
		socket := serveOnSocket(t, func(*Config) {})
		socket.walkRights([]credentialed{{"this user on a Unix socket", nil, everything, "*"}})
	}
}

// walkRights asks for every route with each of credentials.
func (s *served) walkRights(credentials []credentialed) {
	s.t.Helper()
	for _, rt := range s.door.Routes() {
		needs, known := rightsOf[rt.Pattern]
		if !known {
			s.t.Errorf("the route %s has no row in this test", rt.Pattern)
			continue
		}
		if strings.HasSuffix(rt.Pattern, "/logout") || rt.Pattern == "POST /login" {
			continue // they end and begin sessions: TestLoginLinkWorksOnce has them
		}
		if want := needs.queues != "" && needs.queues != allQueues; rt.Queues != want {
			s.t.Errorf("%s looks at queues: %t", rt.Pattern, rt.Queues)
		}
		for _, c := range credentials {
			want := needs.scopes == "" || c.scopes != ""
			for one := range strings.FieldsSeq(needs.scopes) {
				want = want && (one == anyScope || slices.Contains(strings.Fields(c.scopes), one))
			}
			limited := c.queues != "*" && c.queues != "" && needs.scopes != ""
			want = want && !(limited && needs.queues == allQueues)
			queue := "" // without a name, it is for those only who may see all
			if limited && (needs.queues == inQuery || needs.queues == inBody) {
				if s.letIn(rt, c, "") && needs.queues == inQuery {
					s.t.Errorf("%s with %s, without a queue: let in", rt.Pattern, c.name)
				}
				queue = "mail"
			}
			own := !limited || c.queues == "mail" || needs.queues == anyQueue
			if got := s.letIn(rt, c, queue); got != (want && own) {
				s.t.Errorf("%s with %s: let in %t", rt.Pattern, c.name, got)
			}
			if queue != "" && c.queues == "other" && want && !s.letIn(rt, c, "other") {
				s.t.Errorf("%s with %s, for its queue: refused", rt.Pattern, c.name)
			}
		}
	}
}

// letIn asks for a route and reports whether that was not refused, and the job and the queue are there. The
// queue, if it is not "", is that of the request.
func (s *served) letIn(rt door.Route, c credentialed, queue string) bool {
	s.t.Helper()
	method, path := s.requestOf(rt)
	if queue != "" && method != "POST" && method != "PUT" {
		path += "?queue=" + queue
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path,
		strings.NewReader(s.bodyOf(rt.Pattern, cmp.Or(queue, "mail"))))
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.HasPrefix(path, api.Root) && method != "GET" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.header); i += 2 {
		r.Header.Set(c.header[i], c.header[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	body, status := string(text), answer.StatusCode
	if status == http.StatusTooManyRequests && strings.Contains(body, "token") {
		s.t.Fatalf("%s: %s", rt.Pattern, body)
	}
	toLogin := status == http.StatusSeeOther && strings.HasPrefix(answer.Header.Get("Location"), "/login") &&
		!strings.HasPrefix(path, "/log")
	missing := status == http.StatusNotFound && (strings.Contains(body, `"code":"no_job"`) ||
		strings.Contains(body, "there is no queue") || strings.Contains(body, "there is no event"))
	let := status != http.StatusUnauthorized && status != http.StatusForbidden && !toLogin && !missing
	if (!let || c.queues == "other") && strings.Contains(body, `"queue":"mail"`) {
		s.t.Errorf("%s with %s: %s", rt.Pattern, c.name, body)
	}
	return let
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

// The tokens of a claim lead a client to it again, but not one that is for another queue.
func TestTokensOfAnotherQueuesClaim(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	body := func(queue string) string {
		return `{"queues": ["` + queue + `"], "worker": "w", "boot": "` + someBoot + `", "tokens": ["` + someToken +
			`"]}`
	}
	mail := s.create("mail", []string{"mail"}, access.Work)
	other := s.create("other", []string{"other"}, access.Work)
	for _, c := range []struct {
		queue, token string
		want         int
	}{{"mail", mail, 200}, {"other", other, 204}, {"mail", other, 403}, {"mail", mail, 200}} {
		status, text := s.post("POST", "/claims", "application/json", body(c.queue), "Authorization",
			c.token)
		if status != c.want || c.want != 200 && strings.Contains(text, string(s.job)) {
			t.Errorf("%s: %d %s, want %d", c.queue, status, text, c.want)
		}
	}
}

// A process may say that it starts after its first claim, and again after it has stopped; that it stops
// counts once. The ledger is verified at the end.
func TestProcessStartsAndStops(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("a", []string{"mail"}, access.Work)
	path, start := "/workers/"+someBoot, `{"worker": "w", "queues": ["mail"]}`
	claim := `{"queues": ["mail"], "worker": "w", "boot": "` + someBoot + `", "tokens": ["` + someToken + `"]}`
	for i, c := range []struct {
		method, path, body string
		want               int
	}{{"DELETE", path, "", 204}, {"POST", "/claims", claim, 200}, {"DELETE", path, "", 204},
		{"PUT", path, start, 201}, {"PUT", path, start, 200}, {"DELETE", path, "", 204}, {"DELETE", path, "", 204},
		{"PUT", path, `{"worker": "w", "again": true}`, 200}, {"DELETE", path, "", 204}, {"PUT", path, start, 201},
		{"DELETE", path, "", 204}} {
		status, text := s.post(c.method, c.path, "application/json", c.body, "Authorization", token)
		if status != c.want {
			t.Errorf("%d: %s %s: %d %s", i, c.method, c.path, status, text)
		}
	}
	kinds := ""
	for e, err := range s.Store.Lines(t.Context(), ledger.Filter{Worker: "w"}, false) {
		if err != nil {
			t.Fatal(err)
		}
		kinds += e.Kind().String() + " "
	}
	if want := "claimed worker_started worker_stopped worker_started worker_stopped "; kinds != want {
		t.Errorf("%s, want %s", kinds, want)
	}
}
