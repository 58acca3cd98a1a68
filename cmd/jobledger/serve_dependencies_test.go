package main

import (
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// diamond is a workflow: extract, then clean and enrich, then close, which is held, then send and many parts.
func (s *scenario) diamond() map[string]projection.Job {
	s.T.Helper()
	jobs := make(map[string]projection.Job)
	add := func(key string, hold bool, after ...string) {
		e := commands.Enqueue{Queue: "reports", Key: key, Hold: hold}
		for _, parent := range after {
			e.After = append(e.After, commands.Dependency{Job: jobs[parent].ID, On: event.OnSucceeded})
		}
		jobs[key] = s.enqueue(e)
	}
	add("extract", false)
	add("clean", false, "extract")
	add("enrich", false, "extract")
	add("close", true, "clean", "enrich")
	add("send", false, "close")
	for i := range 20 {
		add(fmt.Sprint("part", i), false, "close")
	}
	for range 3 {
		j := s.claim("w1", "reports")
		s.do("worker:w1", j, commands.Succeed{Token: j.Token})
	}
	return jobs
}

// What a job waited for and what waits for it is a picture with a list and an answer of the API, now and in
// the past, and a hold is lifted where it is seen.
func TestDependenciesOfAJob(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	jobs := s.diamond()
	_, get := serveOn(t, s.Store, noon)
	post := poster(t, serveStore(t, s.Store, noon))
	read := func(key, query string) (found print.DependenciesJSON) {
		t.Helper()
		status, _, text := get("/api/v1/jobs/" + string(jobs[key].ID) + "/dependencies" + query)
		if status != 200 {
			t.Fatalf("%s%s: %d %s", key, query, status, text)
		}
		check(t, json.Unmarshal([]byte(text), &found))
		return found
	}
	keyOf := func(id string) string {
		for key, j := range jobs {
			if string(j.ID) == id {
				return key
			}
		}
		return id
	}
	edges := func(found print.DependenciesJSON) (all []string) {
		for _, e := range found.Edges {
			all = append(all, fmt.Sprintf("%s>%s %s", keyOf(e.From), keyOf(e.To), e.State))
		}
		slices.Sort(all)
		return all
	}
	found := read("close", "")
	if n := found.Nodes; len(n) != 10 || *n[0].Key != "close" || !n[0].Held || n[0].Step != 0 ||
		found.More != 15 {
		t.Errorf("%+v", found)
	}
	got := edges(found)
	for _, want := range []string{"extract>clean met", "extract>enrich met", "clean>close met",
		"enrich>close met", "close>send open", "close>part0 open"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %v", want, got)
		}
	}
	then := fmt.Sprintf("at=pos:%d", jobs["part19"].N)
	if got := edges(read("close", "?depth=1&"+then)); !slices.Contains(got, "clean>close open") {
		t.Errorf("in the past: %v", got)
	}
	if got := edges(read("extract", "?depth=1&at=pos:2")); !slices.Equal(got, []string{"extract>clean open"}) {
		t.Errorf("when there was one child: %v", got)
	}
	page := "/jobs/" + string(jobs["close"].ID)
	_, _, text := get(page)
	for _, want := range []string{">Dependencies<", "3 before it: 3 succeeded; 21 after it: 21 blocked",
		"+ 15 blocked", "Unblock…", `<a class="good" href="/jobs/` + string(jobs["extract"].ID) + `"`,
		"close waited for its success, which has come about", "it waits for the success of close"} {
		if !strings.Contains(html.UnescapeString(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, _, old := get(page + "?" + then)
	if strings.Contains(old, "Unblock…") || !strings.Contains(old, "close waits for its success") ||
		!strings.Contains(old, string(jobs["clean"].ID)+"?at=pos") {
		t.Errorf("in the past:\n%s", old)
	}
	alone := s.enqueue(commands.Enqueue{Queue: "mail"})
	if _, _, text := get("/jobs/" + string(alone.ID)); strings.Contains(text, "Dependencies") ||
		strings.Contains(text, "Unblock") {
		t.Errorf("a job alone:\n%s", text)
	}
	for _, c := range []struct {
		path, body string
		header     []string
		want       int
	}{
		{page + "/unblock", "seq=1", nil, 400}, // no reason
		{"/api/v1" + page + "/unblock", `{"reason":"all is there"}`, []string{"If-Match", `"7"`}, 412},
		{"/api/v1/jobs/" + string(jobs["send"].ID) + "/unblock", `{"reason":"all is there"}`, nil, 409}, // no hold
		{page + "/unblock", "seq=1&reason=all+is+there", nil, 303},
		{page + "/unblock", "seq=1&reason=all+is+there", nil, 412},
	} {
		if status, _, text := post(c.path, c.body, c.header...); status != c.want {
			t.Errorf("%s %s: %d, want %d\n%s", c.path, c.body, status, c.want, text)
		}
	}
	if j := read("close", "?depth=1").Nodes[0]; j.Held || *j.State != "queued" {
		t.Errorf("after the hold: %+v", j)
	}
	commandstest.Verify(t, s.Store)
}

// A payload is shown as it was written, and the last error once.
func TestPageOfAJobShowsItsTexts(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	_, get := serveOn(t, s.Store, noon)
	for payload, wants := range map[string][]string{
		`{"n":1e2,"big":12345678901234567890,"s":"\u00e9\/"}`: {"11, JSON", "  \"n\": 1e2,\n",
			`"big": 12345678901234567890,`, `"s": "\u00e9\/"`, "As it came"},
		`{"n":1,"n":2}`:         {"\"n\": 1,\n  \"n\": 2"},
		"just text":             {"9 bytes, text", "<pre>just text</pre>"},
		"\x00\x01\xff":          {"3 bytes, bytes", "00000000  00 01 ff"},
		strings.Repeat("[", 99): {"99 bytes, text"},
		"":                      {"0 bytes</summary>"},
		strings.Repeat("[", 60) + strings.Repeat("]", 60): {"120 bytes, text"},
		strings.Repeat("long ", 20_000): {"100000 bytes, text",
			"This is the first " + words.ByteSize(64<<10)},
	} {
		j := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte(payload)})
		_, _, page := get("/jobs/" + string(j.ID))
		page = html.UnescapeString(page)
		for _, want := range wants {
			if want == "11, JSON" {
				want = fmt.Sprint(len(payload), " bytes, JSON")
			}
			if !strings.Contains(page, want) {
				t.Errorf("no %q in the page of %.60q:\n%.9000s", want, payload, page)
			}
		}
	}
	s.enqueue(commands.Enqueue{Queue: "fails", MaxAttempts: 1})
	j := s.claim("w1", "fails")
	s.do("worker:w1", j, commands.Fail{Token: j.Token, Code: "smtp", Detail: "421 closing the channel"})
	_, _, page := get("/jobs/" + string(j.ID))
	if n := strings.Count(page, "421 closing the channel"); n != 1 || !strings.Contains(page, `href="#error"`) {
		t.Errorf("the error is there %d times:\n%s", n, page)
	}
	commandstest.Verify(t, s.Store)
}
