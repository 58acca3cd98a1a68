package main

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// failing has jobs of a queue exit with a number and a last line each time, or succeed: "ok". It returns the
// id of each by its key.
func (s *scenario) failing(queue string, jobs map[string][]string) map[string]event.JobID {
	s.T.Helper()
	ids := make(map[string]event.JobID)
	for _, key := range slices.Sorted(maps.Keys(jobs)) {
		ids[key] = s.enqueue(commands.Enqueue{Queue: queue, Key: key, MaxAttempts: len(jobs[key])}).ID
		for _, failure := range jobs[key] {
			number, line, _ := strings.Cut(failure, " ")
			var exit int
			fmt.Sscan(number, &exit)
			s.wait(time.Second)
			j := s.claim("w1", queue)
			s.wait(time.Second)
			fail := commands.Fail{Token: j.Token, Code: "exit_code", Detail: "starting\n" + line + "\n\n",
				ExitCode: &exit, RetryIn: new(time.Duration)}
			if number == "ok" {
				s.do("worker:w1", j, commands.Succeed{Token: j.Token})
			} else {
				s.do("worker:w1", j, fail)
			}
		}
	}
	return ids
}

// failureRow is a row of GET /failures.
type failureRow struct {
	ID, Queue, Detail, Example string
	Exit                       *int `json:"exit_code"`
	Attempts, Jobs             int
	Share                      float64
	Steps                      []int
	Now                        map[string]int `json:"jobs_now"`
	LastFailed                 int            `json:"last_failed_jobs"`
}

// A row of failures counts attempts, and its fingerprint selects exactly the jobs that met it, whose last
// failure may be another one. What is retried is exactly the jobs that failed last by it: over HTTP, by the
// command line, and as of a moment of the past.
func TestFailureRowSelectsItsJobs(t *testing.T) {
	s := newScenario(t)
	const refused, segfault = "7 gateway refused: 503", "139 segfault in encoder"
	s.failing("sms", map[string][]string{"old": {refused}})
	s.wait(time.Hour)
	begin := s.Tail() + 1
	jobs := map[string][]string{"done": {refused, "ok"}, "also": {segfault, segfault, refused},
		"other": {refused, segfault}}
	for i := range 6 {
		jobs[fmt.Sprint("a", i)] = []string{fmt.Sprintf("7 gateway refused: %d", 500+i)}
	}
	ids := s.failing("sms", jobs)
	s.failing("mail", map[string][]string{"m": {refused}})
	end := s.Tail()
	clock := func() time.Time { return s.Now }
	get, post := getter(t, serveStore(t, s.Store, clock)), poster(t, serveStore(t, s.Store, clock))
	window := fmt.Sprintf("from=pos:%d&to=pos:%d", begin, end)
	rows := func(query string) (rows []failureRow) {
		t.Helper()
		status, _, text := get("/api/v1/failures?" + query)
		var answer struct{ Items []failureRow }
		if status != 200 || json.Unmarshal([]byte(text), &answer) != nil {
			t.Fatalf("%s: %d %s", query, status, text)
		}
		return answer.Items
	}
	found := rows(window + "&queue=sms")
	if len(found) != 2 || found[0].Detail != "gateway refused: …" || *found[0].Exit != 7 ||
		found[0].Attempts != 9 || found[0].Jobs != 9 || found[0].LastFailed != 7 || found[1].Attempts != 3 ||
		found[1].Jobs != 2 || found[1].LastFailed != 1 || found[1].Share != 3./13 ||
		fmt.Sprint(found[0].Now) != "map[failed:8 succeeded:1]" {
		t.Fatalf("%+v", found)
	}
	if all := rows(window); len(all) != 3 || all[2].Queue != "mail" || all[2].ID != found[0].ID {
		t.Errorf("in several queues: %+v", all)
	}
	keysOf := func(query string) (keys []string) {
		t.Helper()
		for next := "/api/v1/jobs?limit=4&" + query; next != ""; {
			status, _, text := get(next)
			var answer struct {
				Items []struct{ Key string }
				Next  string
			}
			if status != 200 || json.Unmarshal([]byte(text), &answer) != nil {
				t.Fatalf("%s: %d %s", next, status, text)
			}
			for _, j := range answer.Items {
				keys = append(keys, j.Key)
			}
			if next = answer.Next; next != "" && !strings.HasPrefix(next, "/") {
				t.Fatalf("next is %q", next)
			}
		}
		slices.Sort(keys)
		return keys
	}
	want := func(what string, got []string, keys string) {
		t.Helper()
		if strings.Join(got, " ") != keys {
			t.Errorf("%s: %s, want %s", what, got, keys)
		}
	}
	first, second := found[0].ID, found[1].ID
	of := window + "&queue=sms&"
	want("met the first", keysOf(of+"failure="+first), "a0 a1 a2 a3 a4 a5 also done other")
	want("met the second", keysOf(of+"failure="+second), "also other")
	want("last by the first", keysOf(of+"last_failure="+first), "a0 a1 a2 a3 a4 a5 also")
	want("last by the second", keysOf(of+"last_failure="+second), "other")
	want("both", keysOf(of+"failure="+second+"&last_failure="+first), "also")
	want("without a window", keysOf("state=failed&last_failure="+first), "a0 a1 a2 a3 a4 a5 also m old")
	want("enqueued in it", keysOf(of+"by=enqueued&last_failure="+second), "other")
	// As of the moment after the second segfault of "also", that was its last failure.
	_, _, history := get("/api/v1/jobs/" + string(ids["also"]) + "/events")
	var events struct{ Items []struct{ Pos int64 } }
	check(t, json.Unmarshal([]byte(history), &events))
	alsoSegfault := fmt.Sprintf("at=pos:%d&last_failure=%s", events.Items[4].Pos, second)
	want("as of then", keysOf(alsoSegfault), "also")
	for query, says := range map[string]string{"failure=f2-012345678901": "is not the fingerprint",
		"last_failure=x": "is not the fingerprint", "by=failed&from=pos:1": "is for jobs that are asked for by",
		"failure=" + first + "&by=ended&from=pos:1": "is not one of"} {
		if status, _, text := get("/api/v1/jobs?" + query); status != 400 || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	// The command line says and does the same.
	code, out, messages := s.run(0, "report", "failures", "--cause", "--json", "-q", "sms", "--from",
		fmt.Sprint("pos:", begin))
	if code != 0 || !strings.Contains(out, `"failure":"`+first+`","queue":"sms","error_code":"exit_code",`+
		`"exit_code":7,"signal":null,"detail":"gateway refused: …","count":9,"of":13,"jobs":9,"last_failed":7,`) {
		t.Errorf("report: %d %s %s", code, out, messages)
	}
	line := []string{"retry", "--last-failure", second, "-q", "sms", "--from", fmt.Sprint("pos:", begin)}
	if code, out, messages := s.run(0, append(line, "--dry-run")...); code != 0 || out != "1 job\n" {
		t.Errorf("dry run: %d %s %s", code, out, messages)
	}
	if code, _, messages := s.run(0, line...); code != 0 || !strings.HasSuffix(messages, "1 job retried\n") {
		t.Errorf("retry: %d %s", code, messages)
	}
	if code, out, _ := s.run(0, "list", "--last-failure", first, "-q", "sms", "--json", "--to",
		fmt.Sprint("pos:", begin-1)); code != 0 || strings.Count(out, "\n") != 1 ||
		!strings.Contains(out, `"key":"old"`) {
		t.Errorf("list: %d %s", code, out)
	}
	// A row of the page leads to its jobs, and to a retry that names its number before, and after at an address.
	_, _, page := get("/failures?" + window + "&queue=sms")
	link := func(text string) string {
		t.Helper()
		named := regexp.MustCompile(`<a(?: class="button")? href="([^"]+)">` + text + `</a>`)
		found := named.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no link %q in\n%s", text, page)
		}
		return html.UnescapeString(found[1])
	}
	if link("exit 139") == "" || strings.Contains(page, "exit_code") {
		t.Error("a failure of a command is shown by another name than how it exited")
	}
	if _, _, text := get(link("exit 7")); !strings.Contains(text, "<p>9 jobs") {
		t.Errorf("the jobs of a row: %s", text)
	}
	retry := link("Retry 7…")
	_, _, text := get(retry)
	if !strings.Contains(text, "<strong>7</strong> can be changed now") ||
		!strings.Contains(text, "Retry 7 jobs") ||
		!strings.Contains(text, "--last-failure="+first) || strings.Count(text, `<a href="/jobs/`) != 5 {
		t.Errorf("before: %s", text)
	}
	if status, _, text := get(retry + "&do=yes"); status != 400 {
		t.Errorf("a link that acts: %d %s", status, text)
	}
	given, err := url.ParseQuery(strings.TrimPrefix(retry, "/acts?"))
	check(t, err)
	given.Set("do", "yes")
	given.Set("reason", "it is back")
	given.Set("spread", "10m")
	before := s.Tail()
	status, _, text := post("/acts", given.Encode())
	if status != 200 || !strings.Contains(text, "<h1>retried 7 jobs") || !strings.Contains(text, "it is back") ||
		!strings.Contains(text, "<strong>7</strong> done.") {
		t.Errorf("after: %d %s", status, text)
	}
	after := fmt.Sprintf("/acts/%d", before+1)
	if _, _, text := get(after); !strings.Contains(text, "<strong>7</strong> done.") || s.Tail() != before+7 {
		t.Errorf("%s, at pos %d: %s", after, s.Tail(), text)
	}
	if status, _, _ := get("/acts/1"); status != 404 {
		t.Errorf("an act that is none: %d", status)
	}
	want("left", keysOf("state=failed&"+url.Values{"last_failure": {first}}.Encode()), "m old")
	if now := rows(window + "&queue=sms"); now[0].LastFailed != 0 || now[0].Attempts != 9 ||
		fmt.Sprint(now[0].Now) != "map[queued:8 succeeded:1]" {
		t.Errorf("now: %+v", now[0])
	}
	if then := rows(window + fmt.Sprintf("&queue=sms&at=pos:%d", end)); then[0].LastFailed != 7 ||
		fmt.Sprint(then[0].Now) != fmt.Sprint(found[0].Now) {
		t.Errorf("as of then: %+v", then)
	}
	s.Verify()
}

// A failure of a command is shown by how it exited and by the last line that it wrote, and what differs in
// words, such as user12, makes no groups.
func TestFailureShowsCause(t *testing.T) {
	s := newScenario(t)
	jobs := make(map[string][]string)
	for i := range 12 {
		jobs[fmt.Sprint("k", i)] = []string{fmt.Sprintf("69 550 no such user user%d@example.com", i)}
	}
	s.failing("mail", jobs)
	_, get := serveOn(t, s.Store, func() time.Time { return s.Now })
	_, _, page := get("/failures")
	for _, want := range []string{"in 1 group.", ">exit 69</a>", "550 no such user user",
		`data-l="Attempts">12<`, "Retry 12…"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	for _, path := range []string{"/", "/incident?from=-1h"} {
		_, _, page := get(path)
		link := regexp.MustCompile(`href="(/jobs\?[^"]*failure=f1-[^"]*)">exit 69</a>`).FindStringSubmatch(page)
		if len(link) == 0 || !strings.Contains(page, "550 no such user user") {
			t.Errorf("%s does not lead from the cause to its jobs:\n%s", path, page)
			continue
		}
		if _, _, jobs := get(html.UnescapeString(link[1])); !strings.Contains(jobs, "<p>12 jobs") {
			t.Errorf("%s leads to other jobs:\n%s", path, jobs)
		}
	}
	code, out, messages := s.run(120, "report", "failures", "--cause")
	if code != 0 || !strings.Contains(out, "550 no such user …") || strings.Count(out, "f1-") != 1 {
		t.Errorf("%d %s %s", code, out, messages)
	}
	s.Verify()
}

// Only the causes by which jobs failed for good are shown where that is asked, and a row about one worker
// leads to exactly the jobs that it failed.
func TestFailuresGivenUpAndOfOneWorker(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.failing("sms", map[string][]string{"a": {"7 gateway refused"}, "b": {"7 gateway refused"},
		"c": {"9 no route", "ok"}})
	s.enqueue(commands.Enqueue{Queue: "sms", Key: "d"})
	s.wait(time.Second)
	j := s.claim("w2", "sms")
	seven := 7
	s.do("worker:w2", j, commands.Fail{Token: j.Token, Code: "exit_code", Detail: "gateway refused",
		ExitCode: &seven, NoRetry: true})
	_, get := serveOn(t, s.Store, func() time.Time { return s.Now })
	_, _, all := get("/failures")
	_, _, given := get("/failures?given_up=true")
	for page, want := range map[string][]string{
		all:   {"in 2 groups", `href="/failures?given_up=true">Given up only`},
		given: {"in 1 group", "failed for good are shown", `href="/failures?">All of them`}} {
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("no %q in\n%s", part, page)
			}
		}
	}
	for path, n := range map[string]int{"/api/v1/failures": 2, "/api/v1/failures?given_up=false": 2,
		"/api/v1/failures?given_up=true": 1} {
		_, _, text := get(path)
		if got := strings.Count(text, `"id":"f1-`); got != n {
			t.Errorf("%s has %d groups, want %d: %s", path, got, n, text)
		}
	}
	if status, _, text := get("/api/v1/failures?given_up=1"); status != 400 {
		t.Errorf("given_up=1: %d %s", status, text)
	}
	_, _, page := get("/failures?worker=w1")
	link := regexp.MustCompile(`href="(/jobs\?find=[^"]*)">exit 7</a>`).FindStringSubmatch(page)
	if link == nil {
		t.Fatalf("a row about one worker leads to no jobs:\n%s", page)
	}
	_, _, jobs := get(html.UnescapeString(link[1]))
	for key, there := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
		if strings.Contains(jobs, `data-l="KEY">`+key+"<") != there {
			t.Errorf("the jobs of w1: %s is there: %t\n%s", key, !there, jobs)
		}
	}
	s.Verify()
}
