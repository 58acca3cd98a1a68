package main

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
)

// copiedCommand is the command line that a page shows.
var copiedCommand = regexp.MustCompile(`(?s)<dt>CLI</dt><dd><code>(.*?)</code>`)

// The terms of a search select the same jobs on the page, in the API and with the command and the SQL that
// the page shows, and go on to the next page. What cannot be read says what can.
func TestFindJobs(t *testing.T) {
	s := newScenario(t)
	ids := make(map[string]event.JobID)
	for _, j := range []commands.Enqueue{
		{Queue: "mail", Key: "invoice-1", Tags: map[string]string{"customer": "17"}},
		{Queue: "mail", Key: "invoice-2", Tags: map[string]string{"customer": "it's 18"}},
		{Queue: "render", Key: "invoice-3"}} {
		ids[j.Key] = s.enqueue(j).ID
	}
	_, err := s.Cancel(t.Context(), "cli:ada", ids["invoice-2"], "sent twice")
	check(t, err)
	_, fetch := serveOn(t, s.Store, noon)
	link := regexp.MustCompile(`<a href="/jobs/([0-9A-Z]+)"`)
	for _, c := range []struct {
		find, want string
		sql        bool
	}{
		{"invoice", "invoice-3 invoice-2 invoice-1", false},
		{"queue:mail", "invoice-2 invoice-1", true},
		{"-queue:mail", "invoice-3", true},
		{"queue:mail -state:cancelled", "invoice-1", true},
		{"key:invoice-1 key:invoice-3", "invoice-3 invoice-1", true},
		{`tag:"customer=it's 18"`, "invoice-2", true},
		{"tag:customer -tag:customer=17", "invoice-2", false},
		{"actor:cli:ada", "invoice-2", false},
		{"kind:cancelled queue:mail", "invoice-2", false},
		{"pos:3", "invoice-3", false},
	} {
		query := url.Values{"find": {c.find}}.Encode()
		status, _, page := fetch("/jobs?" + query)
		if status != 200 {
			t.Errorf("%s: %d\n%s", c.find, status, page)
			continue
		}
		var shown []string
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			for key, id := range ids {
				if string(id) == found[1] {
					shown = append(shown, key)
				}
			}
		}
		if got := strings.Join(shown, " "); got != c.want {
			t.Errorf("%s on the page: %s, want %s", c.find, got, c.want)
		}
		_, _, text := fetch("/api/v1/jobs?" + query)
		var answer struct {
			Items []struct{ Key string }
		}
		check(t, json.Unmarshal([]byte(text), &answer))
		var items []string
		for _, j := range answer.Items {
			items = append(items, j.Key)
		}
		if got := strings.Join(items, " "); got != c.want {
			t.Errorf("%s in the API: %s, want %s", c.find, got, c.want)
		}
		if !strings.Contains(page, "at=pos%3A4&amp;find=") {
			t.Errorf("%s: no link to this search at this moment", c.find)
		}
		command := copiedCommand.FindStringSubmatch(page)
		if command == nil || html.UnescapeString(command[1]) != "jobledger list "+quotedFind(c.find)+" --limit=50" {
			t.Errorf("%s: the command is %q", c.find, command)
		}
		sql := copiedSQL.FindStringSubmatch(page)
		if c.sql != (sql != nil) {
			t.Errorf("%s: the SQL is %q", c.find, sql)
		}
		if sql != nil {
			lines := strings.TrimSpace(queried(t, s.Store.DSN(), html.UnescapeString(sql[1])))
			if got := strings.Count(lines, "\n") + 1; got != len(items) {
				t.Errorf("%s: SQL %s finds %d, want %d:\n%s", c.find, sql[1], got, len(items), lines)
			}
		}
	}
	_, _, page := fetch("/jobs?limit=1&find=invoice")
	next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(page)
	if next == nil {
		t.Fatalf("there is no next page:\n%s", page)
	}
	if _, _, page = fetch(html.UnescapeString(next[1])); !strings.Contains(page, string(ids["invoice-2"])) {
		t.Errorf("the next page:\n%s", page)
	}
	for find, want := range map[string]string{"colour:red": "the keys are queue, state, key, tag, worker, error",
		"state:lost": "the states are queued", "kind:x": "the kinds are enqueued", `"`: "is not closed"} {
		query := url.Values{"find": {find}}.Encode()
		if status, _, page := fetch("/jobs?" + query); status != 400 || !strings.Contains(page, want) {
			t.Errorf("%s on the page: %d\n%s", find, status, page)
		}
		if status, _, text := fetch("/api/v1/jobs?" + query); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s in the API: %d %s", find, status, text)
		}
	}
	post := poster(t, serveStore(t, s.Store, noon))
	for body, want := range map[string]int{
		`{"act":"cancel","filter":{"find":["queue:mail"]},"at":"pos:4"}`:                                  400,
		`{"act":"cancel","filter":{"find":["-key:invoice-3 state:queued"]},"at":"pos:4","reason":"once"}`: 200,
	} {
		if status, _, text := post("/api/v1/acts", body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	for key, want := range map[string]event.State{"invoice-1": event.CancelledState, "invoice-3": event.Queued} {
		if j, err := s.Get(t.Context(), ids[key]); err != nil || j.State != want {
			t.Errorf("%s is %s, %v", key, j.State, err)
		}
	}
	commandstest.Verify(t, s.Store)
}

// The fields of a search offer names that are in the ledger, each as the search takes it.
func TestFindOffersNames(t *testing.T) {
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	_, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: 1,
		Worker: event.Worker{Name: "alpha & co", Boot: "b1", Host: "h", PID: 1}})
	check(t, err)
	_, fetch := serveOn(t, s.Store, noon)
	_, _, page := fetch("/jobs")
	for _, option := range []string{"queue:mail", "state:queued", `worker:"alpha & co"`, "kind:reclaimed",
		"actor:", "pos:", "mail"} {
		if !strings.Contains(page, `<option value="`+html.EscapeString(option)+`"></option>`) {
			t.Errorf("%s is not offered by\n%s", option, page)
		}
		if strings.HasSuffix(option, ":") || option == "mail" {
			continue
		}
		query := url.Values{"find": {option}}.Encode()
		if status, _, page := fetch("/jobs?" + query); status != 200 {
			t.Errorf("%s: %d\n%s", option, status, page)
		}
	}
	commandstest.Verify(t, s.Store)
}

// quotedFind is the flag with a search as a shell reads it.
func quotedFind(find string) string {
	if !strings.ContainsAny(find, ` '"`) {
		return "--find=" + find
	}
	return `'--find=` + strings.ReplaceAll(find, "'", `'\''`) + `'`
}

// What a page shows of a job is found as it is shown.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	tagged := s.enqueue(commands.Enqueue{Queue: "mail", Key: "tagged", Group: "acme", Version: "v2",
		Tags: map[string]string{"customer": "17"}})
	lost := s.enqueue(commands.Enqueue{Queue: "sms", Key: "lost"})
	for i, name := range []string{"zed", "alpha"} {
		j := s.claim(name, "sms")
		if i == 0 {
			s.do("worker:zed", j, commands.Release{Token: j.Token})
			continue
		}
		seven := 7
		s.do("worker:alpha", j, commands.Fail{Token: j.Token, Code: "exit_code", ExitCode: &seven, NoRetry: true,
			Detail: "starting\ngateway refused: 503"})
	}
	_, get := serveOn(t, s.Store, noon)
	for find, want := range map[string]string{"customer=17": "tagged", "-customer=17": "lost",
		"worker:zed":              "lost",
		"worker:zed worker:alpha": "lost", "worker:other": "", "owner:zed": "", "owner:alpha": "lost",
		`"gateway refused"`: "lost", `text:"refused: 503"`: "lost", `-text:refused`: "tagged",
		"group:acme": "tagged",
		"exit:7":     "lost", "exit:8": "", "-exit:7": "tagged", "version:v2": "tagged", "schedule:nightly": "",
		"host:" + s.worker("alpha").Host: "lost", "code:exit_code": "lost", "-code:exit_code": "tagged",
		"code:other": "", "code:exit_code error:exit_code": "lost", "by:zed": "lost", "by:worker:alpha": "lost",
		"by:alpha by:zed": "lost", "by:alph": "", "-by:zed": "tagged", "by:worker": "",
		"ended:2026-01-02": "lost", "ended:2026-01-02..2026-01-03": "lost", "ended:..2026-01-02": "",
		"ended:pos:6..": "lost", "ended:..pos:5 since:pos:1": "lost", "ended:2026-01-03": ""} {
		at := url.Values{"find": {find}}
		for range 2 { // now, and as of the last event
			_, _, text := get("/api/v1/jobs?" + at.Encode())
			var answer struct {
				Items []struct{ Key string }
			}
			check(t, json.Unmarshal([]byte(text), &answer))
			var got []string
			for _, j := range answer.Items {
				got = append(got, j.Key)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %q: %s", at.Encode(), got, want, text)
			}
			at.Set("at", "pos:"+strconv.FormatInt(s.Tail(), 10))
		}
	}
	for find, want := range map[string]string{"exit:x": "0 to 255", "-ended:-1h": "-ended is not a term",
		"ended:..": "FROM..TO", "ended:now..-1h": "ends before it begins", "ended:soon": "is not a time",
		"payload": "", "colour:red": "payload, code, by, ended", "by:": "by: has no value"} {
		query := url.Values{"find": {find}}.Encode()
		status, _, text := get("/api/v1/jobs?" + query)
		if want != "" && status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", find, status, text, want)
		}
	}
	for _, id := range []string{string(lost.ID), strings.ToLower(string(tagged.ID))} {
		if _, _, page := get("/jobs?find=" + id); !strings.Contains(page, "Job <code>"+strings.ToUpper(id)+"<") {
			t.Errorf("a whole id does not lead to its job:\n%s", page)
		}
	}
	commandstest.Verify(t, s.Store)
}

// Payloads are found as they are now, or were at a moment, by those alone who may see them; an erased one is
// not.
func TestSearchFindsPayloads(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	old := s.enqueue(commands.Enqueue{Queue: "mail", Key: "old", UniqueWhile: event.WhileQueued,
		Payload: []byte(`{"to": "ada@example.com"}`)})
	s.enqueue(commands.Enqueue{Queue: "mail", Key: "bytes", Payload: []byte("\xff\x00 ada")})
	s.enqueue(commands.Enqueue{Queue: "mail", Key: "none"})
	gone := s.enqueue(commands.Enqueue{Queue: "mail", Key: "gone", Payload: []byte("ada")})
	before := s.Tail()
	_, err := s.Enqueue(t.Context(), "cli:ada@build7", commands.Enqueue{Queue: "mail", Key: "old",
		UniqueWhile: event.WhileQueued, OnDuplicate: commands.ReplaceDuplicate, Payload: []byte("to bob")})
	check(t, err)
	_, err = s.Cancel(t.Context(), "cli:ada@build7", gone.ID, "a mistake")
	check(t, err)
	_, err = s.Erase(t.Context(), "cli:ada@build7", gone.ID, "she asked for it")
	check(t, err)
	served := serveStore(t, s.Store, noon)
	ask := asker(t, served, []string{"*"}, access.Read, access.Bodies, access.Operate)
	keys := func(find, at string) string {
		t.Helper()
		status, _, text := ask("GET", "/jobs?"+url.Values{"find": {find}, "at": {at}}.Encode(), "")
		var answer struct{ Items []struct{ Key string } }
		check(t, json.Unmarshal([]byte(text), &answer))
		var all []string
		for _, j := range answer.Items {
			all = append(all, j.Key)
		}
		if status != 200 {
			t.Errorf("%s: %d %s", find, status, text)
		}
		return strings.Join(all, " ")
	}
	then := "pos:" + strconv.FormatInt(before, 10)
	for _, c := range []struct{ find, at, want string }{
		{"payload:ada", "now", "bytes"}, {"payload:bob", "now", "old"}, {"-payload:ada", "now", "gone none old"},
		{`payload:" ada" key:bytes`, "now", "bytes"}, {"payload:ADA", "now", ""},
		{"payload:to payload:bob", "now", "old"},
		{"payload:ada", then, "bytes old"}, {"payload:bob", then, ""}, {"payload:to -payload:bob", then, "old"},
	} {
		if got := keys(c.find, c.at); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.find, c.at, got, c.want)
		}
	}
	blind := asker(t, served, []string{"*"}, access.Read, access.Operate)
	for _, one := range [][3]string{{"GET", "/jobs?find=payload:ada", ""},
		{"GET", "/jobs?find=-payload:ada", ""},
		{"POST", "/acts", `{"act": "cancel", "filter": {"find": ["payload:bob"]}, "at": "pos:1", "reason": "r"}`}} {
		if status, _, text := blind(one[0], one[1], one[2]); status != 403 ||
			!strings.Contains(text, "no right to payloads") {
			t.Errorf("%v without the scope bodies: %d %s", one, status, text)
		}
	}
	if j, err := s.Get(t.Context(), old.ID); err != nil || j.State != event.Queued {
		t.Errorf("it is %s, %v", j.State, err)
	}
	commandstest.Verify(t, s.Store)
}
