package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
)

// An error says which part of the request is wrong, each of them where there are several, and how things are
// now where that is why.
func TestProblemsSayWhere(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	job := s.enqueue(commands.Enqueue{Queue: "mail"})
	serving := serveStore(t, s.Store, noon)
	token := serving.tokenFor(t, access.Read, access.Enqueue, access.Work, access.Operate)
	var client http.Client
	t.Cleanup(client.CloseIdleConnections)
	ask := func(method, path, body string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, serving.base+path, strings.NewReader(body))
		check(t, err)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		r.Header.Set("Authorization", token)
		answer, err := client.Do(r)
		check(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		return answer.StatusCode, string(text)
	}
	const jsonType, linesType = "application/json", "application/x-ndjson"
	jobs, one := "/api/v1/jobs", "/api/v1/jobs/"+string(job.ID)
	line := func(n int, field string) string { return fmt.Sprintf("%d:%s", n, field) }
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
		field                    string
		errors                   []string // LINE:FIELD
	}{
		{"GET", jobs + "?limit=0", "", "", 400, "limit", nil},
		{"GET", jobs + "?state=lost", "", "", 400, "state", nil},
		{"GET", jobs + "?at=soon", "", "", 400, "at", nil},
		{"GET", jobs + "?queue=a+b", "", "", 400, "queue", nil},
		{"GET", jobs + "?colour=red", "", "", 400, "colour", nil},
		{"GET", jobs + "?colour=red&size=9&key=a&key=b", "", "", 400, "colour",
			[]string{line(0, "colour"), line(0, "key"), line(0, "size")}},
		{"GET", "/api/v1/events?kind=lost", "", "", 400, "kind", nil},
		{"GET", "/api/v1/events?from=pos:2&to=pos:1", "", "", 400, "from", nil},
		{"GET", "/api/v1/events/stream?kind=lost", "", "", 400, "kind", nil},
		{"GET", "/api/v1/attempts?outcome=lost", "", "", 400, "outcome", nil},
		{"GET", "/api/v1/series?from=x", "", "", 400, "from", nil},
		{"GET", "/api/v1/lanes?px=0", "", "", 400, "px", nil},
		{"GET", "/api/v1/export?format=xml", "", "", 400, "format", nil},
		{"GET", "/api/v1/claims?boat=1&coat=2", "", "", 400, "boat", []string{line(0, "boat"), line(0, "coat")}},
		{"POST", jobs, jsonType, `{"queue":"mail","priority":"high"}`, 400, "priority", nil},
		{"POST", jobs, jsonType, `{"queue":"mail","colour":1}`, 400, "colour", nil},
		{"POST", jobs, jsonType, `{"queue":"mail","key":"a","key":"b"}`, 400, "key", nil},
		{"POST", jobs, jsonType, `{"payload":"a"}`, 400, "queue", nil},
		{"POST", jobs, jsonType, `{"queue":"mail","max_attempts":2000000}`, 400, "max_attempts", nil},
		{"POST", jobs, jsonType, `{`, 400, "", nil},
		{"POST", jobs, linesType, `{"queue":"mail"}` + "\n\n" + `{"queue":"mail","delay":"soon"}` + "\n" +
			`{"queue":"mail"}` + "\n" + `[]` + "\n" + `{"queue":"a b"}`, 400, "",
			[]string{line(3, "delay"), line(5, ""), line(6, "queue")}},
		{"POST", jobs, linesType, `{"queue":"mail","key":"a","key":"b"}`, 400, "key", []string{line(1, "key")}},
		{"POST", "/api/v1/queues/mail/jobs?priority=x", "text/plain", "a", 400, "priority", nil},
		{"POST", "/api/v1/claims", jsonType, `{"queues":["mail"],"lease":"long"}`, 400, "lease", nil},
		{"POST", "/api/v1/claims", jsonType, `{"queues":["mail"],"patience":1}`, 400, "patience", nil},
		{"POST", "/api/v1/claims", jsonType, `{"queues":["mail"],"wait":99,"tokens":["a"]}`, 400, "wait", nil},
		{"POST", one + "/cancel", jsonType, `{"why":"a"}`, 400, "why", nil},
		{"POST", one + "/reschedule", jsonType, `{"reason":"a"}`, 400, "run_at", nil},
		{"POST", "/api/v1/acts", jsonType, `{"act":"burn","at":"pos:1","filter":{"state":["queued"]}}`, 400, "act",
			nil},
		{"POST", "/api/v1/acts", jsonType, `{"act":"cancel","at":"now"}`, 400, "at", nil},
		{"POST", one + "/retry", jsonType, `{"reason":"a"}`, 409, "", nil},
	} {
		status, text := ask(c.method, c.path, c.body, "Content-Type", c.kind)
		var p wire.Problem
		check(t, json.Unmarshal([]byte(text), &p))
		var found []string
		for _, e := range p.Errors {
			if found = append(found, line(e.Line, e.Field)); e.Detail == "" {
				t.Errorf("%s %s %s: an error without detail: %s", c.method, c.path, c.body, text)
			}
		}
		if status != c.status || p.Field != c.field || !reflect.DeepEqual(found, c.errors) {
			t.Errorf("%s %s %s: %d field %q errors %q, want %d %q %q\n%s", c.method, c.path, c.body, status, p.Field,
				found, c.status, c.field, c.errors, text)
		}
		apitest.Answer(t, c.method, c.path, status, "application/problem+json", text)
		if c.status == 409 && (p.Job == nil || string(p.Job.ID) != string(job.ID) || p.Pos != s.Tail()) {
			t.Errorf("a conflict does not say how the job is: %s", text)
		}
	}
	status, text := ask("POST", one+"/cancel", `{"reason":"a"}`, "Content-Type", jsonType, "If-Match", `"9"`)
	if status != 412 || !strings.Contains(text, `"pos":1`) || !strings.Contains(text, `"state":"queued"`) {
		t.Errorf("a job that has moved on: %d %s", status, text)
	}
	status, text = ask("POST", one+"/cancel", `{}`, "If-Match", "x", "Content-Type", jsonType)
	if status != 400 || !strings.Contains(text, `"field":"If-Match"`) {
		t.Errorf("a tag that is none: %d %s", status, text)
	}
	s.Verify()
}
