package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// poster returns a function that posts with a session, as a form or as JSON, and does not follow redirects,
// but for that to what an act did.
func poster(t *testing.T, s servedStore) func(path, body string, header ...string) (int, http.Header,
	string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check(t, err)
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/acts/") {
			return nil
		}
		return http.ErrUseLastResponse
	}}
	t.Cleanup(client.CloseIdleConnections)
	post := func(path, body string, header ...string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+path, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if strings.HasPrefix(body, "{") {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := client.Do(r)
		check(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		return answer.StatusCode, answer.Header, string(text)
	}
	_, code, _ := strings.Cut(<-s.links, "#")
	if status, _, text := post("/login", url.Values{"code": {code}}.Encode()); status != http.StatusSeeOther {
		t.Fatalf("login: %d %s", status, text)
	}
	return post
}

// Who logs in by a link erases only where the server allows that. Elsewhere the page says how to allow it.
func TestErasingIsAllowed(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	j := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	_, err := s.Cancel(t.Context(), "cli:ada", j.ID, "twice")
	check(t, err)
	page := "/jobs/" + string(j.ID)
	form := url.Values{"reason": {"asked to"}, "seq": {"2"}, "sure": {"true"}}.Encode()
	hint := "jobledger serve --allow erase"
	post := poster(t, serveStore(t, s.Store, noon))
	for path, body := range map[string]string{page + "/erase": form,
		"/api/v1" + page + "/erase": `{"reason":"r"}`} {
		if status, _, text := post(path, body); status != 403 || !strings.Contains(text, "--allow erase") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	_, plain := serveOn(t, s.Store, noon)
	if _, _, text := plain(page); strings.Contains(text, "Erase…") || !strings.Contains(text, hint) {
		t.Errorf("where it is not allowed:\n%s", text)
	}
	get := getter(t, serveErasing(t, s.Store, noon))
	if _, _, text := get(page); !strings.Contains(text, "Erase…") || strings.Contains(text, hint) {
		t.Errorf("where it is allowed:\n%s", text)
	}
	post = poster(t, serveErasing(t, s.Store, noon))
	if status, _, text := post(page+"/erase", form); status != 303 {
		t.Errorf("where it is allowed: %d %s", status, text)
	}
	if _, _, text := plain(page); strings.Contains(text, hint) {
		t.Errorf("once it is erased:\n%s", text)
	}
	commandstest.Verify(t, s.Store)
}

// An operator's act needs a reason, and leaves alone a job that has moved on since it was seen.
func TestActsOnOneJob(t *testing.T) {
	s := newScenario(t)
	j := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	post := poster(t, serveErasing(t, s.Store, noon))
	form := func(pairs ...string) string {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return values.Encode()
	}
	page, resource := "/jobs/"+string(j.ID), "/api/v1/jobs/"+string(j.ID)
	for _, c := range []struct {
		path, body string
		header     []string
		want       int
	}{
		{page + "/cancel", form("seq", "1"), nil, 400},
		{page + "/cancel", form("reason", "twice"), nil, 400},
		{page + "/cancel", form("reason", "twice", "seq", "7"), nil, 412},
		{page + "/erase", form("reason", "twice", "seq", "1"), nil, 400}, // the box is not ticked
		{page + "/retry", form("reason", "twice", "seq", "1"), nil, 409}, // it has not ended
		{resource + "/cancel", `{"reason":"twice"}`, []string{"If-Match", `"7"`}, 412},
		{resource + "/cancel", `{"reason":"twice"}`, []string{"If-Match", "x"}, 400},
		{resource + "/cancel", `{"reasons":"twice"}`, nil, 400},
		{resource + "/reschedule", `{"reason":"later"}`, nil, 400},
		{page + "/reschedule", form("reason", "later", "seq", "1", "run_at", "+10m"), nil, 303},
		{page + "/cancel", form("reason", "twice", "seq", "2"), nil, 303},
		{resource + "/retry", `{"reason":"again"}`, []string{"If-Match", `"3"`}, 200},
		{resource + "/cancel", ``, nil, 200},
		{page + "/erase", form("reason", "asked to", "seq", "5", "sure", "true"), nil, 303},
		{"/queues/mail/pause", form("reason", "smtp is down"), nil, 303},
		{"/queues/mail/pause", form(), nil, 400},
		{"/api/v1/queues/mail/pause", `{"reason":"again"}`, nil, 200},
		{"/queues/mail/resume", form("reason", "it is back"), nil, 303},
	} {
		if status, _, text := post(c.path, c.body, c.header...); status != c.want {
			t.Errorf("%s %s: %d, want %d\n%s", c.path, c.body, status, c.want, text)
		}
	}
	var got []string
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{After: 1}) {
			check(t, err)
			if !strings.HasPrefix(e.Actor, "http:") {
				t.Errorf("pos %d by %s", e.Pos, e.Actor)
			}
			got = append(got, e.Kind().String())
		}
		return nil
	}))
	if want := "rescheduled cancelled retried cancelled erased queue_paused queue_resumed"; strings.Join(got,
		" ") != want {
		t.Errorf("events %v, want %s", got, want)
	}
	commandstest.Verify(t, s.Store)
}

// The tag of a job is good for If-Match, and so is its seq. If the job has moved on, the answer says how
// it is. For If-None-Match the tag also differs by what the caller may see, and once the bodies are erased.
func TestTagsOfJob(t *testing.T) {
	s := newScenario(t)
	j := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte(strings.Repeat("a", 2000))})
	serving := serveStore(t, s.Store, noon)
	token := serving.tokenFor(t, access.Read, access.Bodies, access.Operate, access.Erase)
	short := serving.tokenFor(t, access.Read)
	resource := "/api/v1/jobs/" + string(j.ID)
	ask := func(method, path, token string, header ...string) (answer *http.Response, job map[string]any) {
		t.Helper()
		body := ""
		if method == "POST" {
			body = `{"reason":"a"}`
			header = append(header, "Content-Type", "application/json")
		}
		r, err := http.NewRequestWithContext(t.Context(), method, serving.base+path, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Authorization", token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
		defer client.CloseIdleConnections()
		answer, err = client.Do(r)
		check(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		if answer.Header.Get("Content-Encoding") == "" && len(text) > 0 {
			check(t, json.Unmarshal(text, &job))
		}
		return answer, job
	}
	tagOf := func(path, token string, header ...string) string {
		answer, _ := ask("GET", path, token, header...)
		tag := answer.Header.Get("ETag")
		weak := `"x", W/` + strings.TrimPrefix(tag, "W/")
		for _, known := range []string{tag, strings.Replace(tag, "-gzip", "", 1), weak} {
			again, _ := ask("GET", path, token, append(header, "If-None-Match", known)...)
			if again.StatusCode != http.StatusNotModified || again.Header.Get("ETag") != tag {
				t.Errorf("%s with the tag %s: %s, %s", path, known, again.Status, again.Header.Get("ETag"))
			}
		}
		return tag
	}
	first, hidden := tagOf(resource, token), tagOf(resource, short)
	zipped, then := tagOf(resource, token, "Accept-Encoding", "gzip"), tagOf(resource+"?at=pos:1", token)
	if !strings.HasPrefix(first, `"1.`) || !strings.HasPrefix(hidden, `"1.`) || first == hidden ||
		zipped != strings.TrimSuffix(first, `"`)+`-gzip"` || !strings.HasPrefix(then, "W/") {
		t.Errorf("tags %s, without bodies %s, compressed %s, of the past %s", first, hidden, zipped, then)
	}
	// A time would be too coarse: see docs/http.md.
	if by, _ := ask("GET", resource, token, "If-Modified-Since", "Fri, 31 Dec 9999 00:00:00 GMT"); by.
		StatusCode != http.StatusOK || by.Header.Get("Last-Modified") != "" {
		t.Errorf("by a time: %s, %s", by.Status, by.Header.Get("Last-Modified"))
	}
	for _, c := range []struct {
		verb, match string
		want        int
	}{
		{"cancel", then, 412}, {"cancel", `"x"`, 412}, {"cancel", `"7"`, 412}, {"cancel", `1x`, 400},
		{"cancel", "", 200},                                                                             // seq 2
		{"retry", first, 412}, {"retry", zipped, 412}, {"retry", `"x", "2.0123456789abcdef-gzip"`, 200}, // 3
		{"cancel", `"1", "3"`, 200}, {"retry", `*`, 200}, {"cancel", `5`, 200}, // 6
	} {
		answer, body := ask("POST", resource+"/"+c.verb, token, "If-Match", c.match)
		if answer.StatusCode != c.want {
			t.Errorf("%s with %s: %s %v", c.verb, c.match, answer.Status, body)
		}
		if now, _ := body["job"].(map[string]any); c.want == http.StatusPreconditionFailed &&
			(body["code"] != "moved_on" || answer.Header.Get("ETag") != fmt.Sprintf(`"%v"`, now["seq"]) ||
				now["state"] != map[bool]string{true: "queued", false: "cancelled"}[now["seq"] == 1.]) {
			t.Errorf("%s with %s does not say how the job is: %v, %v", c.verb, c.match, body, answer.Header)
		}
	}
	before, hidden := tagOf(resource, token), tagOf(resource, short)
	if answer, body := ask("POST", resource+"/erase", token, "If-Match", before); answer.StatusCode != 200 {
		t.Errorf("erase: %s %v", answer.Status, body)
	}
	if after := tagOf(resource, token); after == before || !strings.HasPrefix(after, `"6.`) ||
		tagOf(resource, short) == hidden { // who may not see a payload sees that it is gone
		t.Errorf("the tag once the payload is erased: %s, before %s", after, before)
	}
	s.Verify()
}

// An act on many jobs is about those that matched at a position: what changed since then is left as it is and
// named.
func TestActsOnManyJobs(t *testing.T) {
	s := newScenario(t)
	var ids []event.JobID
	for i := range 5 {
		j := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a"), Tags: map[string]string{"batch": "7"},
			Key: fmt.Sprint(i)})
		ids = append(ids, j.ID)
	}
	post := poster(t, serveStore(t, s.Store, noon))
	_, err := s.Cancel(t.Context(), "cli:test", ids[2], "by hand")
	check(t, err)
	many := func(body string) (status int, tally map[string]any) {
		t.Helper()
		status, _, text := post("/api/v1/acts", body)
		if err := json.Unmarshal([]byte(text), &tally); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return status, tally
	}
	for _, c := range []struct {
		body string
		want int
		text string
	}{
		{`{"act":"cancel","filter":{"queue":["mail"]},"at":"pos:5"}`, 400, "the queue alone"},
		{`{"act":"cancel","filter":{},"at":"pos:5"}`, 400, "a filter is one of"},
		{`{"act":"erase","filter":{"tag":["batch=7"]},"at":"pos:5"}`, 400, "the acts are"},
		{`{"act":"cancel","filter":{"tag":["batch=7"]},"at":"now"}`, 400, "at is pos:N"},
		{`{"act":"cancel","filter":{"db":["x"]},"at":"pos:5"}`, 400, "a filter is one of"},
		{`{"act":"cancel","filter":{"tag":["batch=7"],"db":["x"]},"at":"pos:5"}`, 400, "no parameter"},
		{`{"act":"cancel","filter":{"tag":["batch=7"]},"at":"pos:99"}`, 400, "ends at pos:6"},
	} {
		if status, got := many(c.body); status != c.want || !strings.Contains(fmt.Sprint(got["detail"]), c.text) {
			t.Errorf("%s: %d %v", c.body, status, got)
		}
	}
	const set = `"act":"cancel","filter":{"tag":["batch=7"]},"at":"pos:5","reason":"wrong batch"`
	if _, got := many(`{` + set + `,"dry_run":true}`); got["selected"] != 5. || got["possible"] != 4. ||
		got["moved_on"] != 1. || got["done"] != 0. ||
		fmt.Sprint(got["moved_on_jobs"]) != fmt.Sprintf("[%s]", ids[2]) {
		t.Errorf("dry run: %v", got)
	}
	if _, got := many(`{` + set + `}`); got["done"] != 4. || got["moved_on"] != 1. || got["from_pos"] != 7. ||
		got["to_pos"] != 10. {
		t.Errorf("done: %v", got)
	}
	form := url.Values{"act": {"retry"}, "f_tag": {"batch=7"}, "pos": {"10"}, "do": {"no"}, "spread": {"10m"}}
	status, _, text := post("/acts", form.Encode())
	if status != 200 || !strings.Contains(text, "<strong>5</strong> can be changed now") {
		t.Errorf("form, first: %d %s", status, text)
	}
	form.Set("do", "yes")
	if status, _, text = post("/acts", form.Encode()); status != 400 || !strings.Contains(text, "say why") {
		t.Errorf("form without a reason: %d %s", status, text)
	}
	form.Set("reason", "right after all")
	if status, _, text = post("/acts", form.Encode()); status != 200 ||
		!strings.Contains(text, "<strong>5</strong> done") {
		t.Errorf("form: %d %s", status, text)
	}
	delays := map[string]bool{}
	for _, id := range ids {
		j, err := s.Get(t.Context(), id)
		check(t, err)
		delays[j.RunAt.String()] = true
		if j.State != event.Queued {
			t.Errorf("job %s is %s", id, j.State)
		}
	}
	if len(delays) < 4 {
		t.Errorf("the jobs run at %v: they are not spread", delays)
	}
	commandstest.Verify(t, s.Store)
}
