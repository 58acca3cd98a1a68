package web

import (
	"net/http"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
)

// A request whose header Accept has nothing that the answer can be is refused, and does nothing; the refusal
// says what there is.
func TestAcceptIsExact(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("a", []string{"*"}, access.Scopes...)
	const object, lines, none = "application/json", "application/x-ndjson", ""
	job := "/jobs/" + string(s.job)
	for _, c := range []struct{ path, accept, want string }{
		{"/status", "", object}, {"/status", "*/*", object}, {"/status", "application/*", object},
		{"/status", "text/html, */*;q=0.1", object}, {"/status", "APPLICATION/JSON; charset=utf-8", object},
		{"/status", "text/html", none}, {"/status", "application/json;q=0", none},
		{"/status", "*/*;q=0", none}, {"/status", "text/*, application/json;q=0.0", none},
		{"/status", lines, lines}, {"/status", "*/*, " + lines, lines}, {"/status", lines + ";q=0", none},
		{"/status", lines + ";q=0.5, " + object, object}, {"/status", object + ";q=0, */*", lines},
		{"/status", lines + ";q=0, */*", object}, {"/status", "nonsense", object},
		{"/ledger", lines, lines},
		{"/openapi.json", lines, none}, {"/openapi.json", "*/*", object},
		{"/ledger", object, object}, {"/ledger", "text/html", none},
		{job + "/payload", "*/*", "application/octet-stream"}, {job + "/payload", object, none},
		{"/export", lines, lines}, {"/export", "text/csv", none}, {"/export?format=csv", "text/csv", "text/csv"},
		{"/export?format=csv", object, none}, {"/events/stream", object, none},
	} {
		header := []string{"Authorization", token}
		if c.accept != "" {
			header = append(header, "Accept", c.accept)
		}
		answer, body := s.do("GET", api.Root+c.path, nil, header...)
		kind := answer.Header.Get("Content-Type")
		switch {
		case c.want == none && (answer.StatusCode != http.StatusNotAcceptable ||
			kind != "application/problem+json" || !strings.Contains(body, `"code":"not_acceptable"`) ||
			!strings.Contains(body, "can be: ")):
			t.Errorf("%s as %q: %s %s", c.path, c.accept, answer.Status, body)
		case c.want != none && (answer.StatusCode != http.StatusOK || !strings.HasPrefix(kind, c.want)):
			t.Errorf("%s as %q: %s, %s %s", c.path, c.accept, answer.Status, kind, body)
		}
	}
	if answer, body := s.do("GET", api.Root+"/nowhere", nil, "Authorization", token, "Accept",
		"text/html"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("what is not there: %s %s", answer.Status, body)
	}
	status, text := s.post("POST", "/jobs", "application/json", `{"queue": "mail"}`, "Authorization", token,
		"Accept", "text/html")
	if status != http.StatusNotAcceptable {
		t.Errorf("a new job: %d %s", status, text)
	}
	if answer, body := s.do("GET", "/jobs", nil, "Authorization", token, "Accept", "image/png"); answer.
		StatusCode != http.StatusOK {
		t.Errorf("a page: %s %s", answer.Status, body)
	}
	tail, err := s.api.Tail(t.Context())
	if err != nil || tail != 1 {
		t.Errorf("there are %d events, %v", tail, err)
	}
}

// A path that is another spelling of one of the API is refused as JSON, and leads nowhere.
func TestOtherSpellingsOfPathsAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("a", []string{"*"}, access.Scopes...)
	for _, path := range []string{"/jobs/../../etc/passwd/events", "//jobs", "/jobs//events", "/./ledger",
		"/../v1/ledger", "/jobs/.."} {
		for _, method := range []string{"GET", "POST"} {
			answer, body := s.roundTrip(method, api.Root+path, "", "Authorization", token)
			if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, `"code":"no_resource"`) ||
				answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %s %s", method, path, answer.Status, body)
			}
		}
	}
}
