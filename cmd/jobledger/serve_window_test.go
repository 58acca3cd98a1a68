package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
)

// A window about a moment of the past shows nothing that came later, even if it was chosen before the
// moment.
func TestWindowsEndAtTheirMoment(t *testing.T) {
	t.Parallel()
	_, get := serveNight(t)
	for _, from := range []string{"2026-03-15T00:00:00Z", "pos:100"} {
		window := "from=" + from + "&to=2026-03-15T03:00:00Z"
		var diff struct{ To struct{ Pos int64 } }
		text := get("/api/v1/diff?at=pos:500&" + window)
		check(t, json.Unmarshal([]byte(text), &diff))
		if diff.To.Pos != 500 {
			t.Errorf("%s: the diff ends at %s", window, text)
		}
		var failures struct {
			Items []struct {
				LastPos int64 `json:"last_pos"`
			}
		}
		check(t, json.Unmarshal([]byte(get("/api/v1/failures?at=pos:500&"+window)), &failures))
		for _, g := range failures.Items {
			if g.LastPos > 500 {
				t.Errorf("%s: a failure at pos %d", window, g.LastPos)
			}
		}
		found := regexp.MustCompile(`: (\d+) events\.`).FindStringSubmatch(get("/incident?at=pos:500&" + window))
		if found == nil {
			t.Fatalf("%s: the incident has no events", window)
		}
		if n, err := strconv.Atoi(found[1]); err != nil || n > 500 {
			t.Errorf("%s: the incident has %d events", window, n)
		}
	}
	whole := get("/api/v1/diff?at=pos:2500&from=pos:100&to=pos:400")
	if !strings.Contains(whole, `"pos":400`) {
		t.Errorf("a window before its moment is not as it was asked for: %s", whole)
	}
}

// A window that begins an hour ago is one, however long ago the last claim was.
func TestWindowOfAQuietHour(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	s.claim("alpha", "mail")
	s.wait(10 * time.Hour)
	later := s.Now
	_, fetch := serveOn(t, s.Store, func() time.Time { return later })
	for _, resource := range []string{"failures", "lanes", "series", "diff", "depth"} {
		if status, _, text := fetch("/api/v1/" + resource + "?from=-1h"); status != 200 {
			t.Errorf("%s: %d %s", resource, status, text)
		}
	}
	commandstest.Verify(t, s.Store)
}

// Failures lead to their jobs, even if these have succeeded since.
func TestFailuresLeadToTheirJobs(t *testing.T) {
	t.Parallel()
	_, get := serveNight(t)
	links := regexp.MustCompile(`href="(/jobs\?[^"]*failure=[^"]*)"`).FindAllStringSubmatch(
		get("/failures?from=pos:1&to=pos:3000"), -1)
	if len(links) < 3 {
		t.Fatalf("%d links", len(links))
	}
	for _, link := range links {
		address := strings.ReplaceAll(link[1], "&amp;", "&")
		if page := get(address); strings.Contains(page, "No job matches") {
			t.Errorf("%s leads to no job", address)
		}
	}
}

// The link of the tail is one that it takes, and a client may say in any way of HTTP that it takes lines.
func TestLinkOfTail(t *testing.T) {
	t.Parallel()
	_, get := serveNight(t)
	page := get("/tail?queue=mail")
	if regexp.MustCompile(`/tail\?[^"]*at=`).MatchString(page) {
		t.Errorf("the tail has a link that it does not take:\n%s", page)
	}
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	_, fetch := serveOn(t, s.Store, noon)
	for accept, lines := range map[string]bool{"application/x-ndjson": true, "application/x-ndjson;q=1": true,
		"application/json;q=0.5, application/x-ndjson": true, "application/x-ndjson;q=0": false, "*/*": false,
		"": false} {
		_, header, _ := fetch("/api/v1/jobs", "Accept", accept)
		if got := header.Get("Content-Type") == "application/x-ndjson"; got != lines {
			t.Errorf("Accept: %s: %s", accept, header.Get("Content-Type"))
		}
	}
}

// Jobs that one act reschedules run within the time over which they are spread, from now on where no
// other time is given.
func TestRescheduleSpreads(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	var ids []event.JobID
	for range 12 {
		ids = append(ids, s.enqueue(commands.Enqueue{Queue: "mail", Tags: map[string]string{"batch": "7"},
			RunAt: s.Now.Add(time.Hour)}).ID)
	}
	now := s.Now
	post := poster(t, serveStore(t, s.Store, func() time.Time { return now }))
	status, _, text := post("/api/v1/acts", `{"act":"reschedule","filter":{"tag":["batch=7"]},`+
		`"at":"pos:12","spread":"10m"}`)
	if status != 200 || !strings.Contains(text, `"done":12`) {
		t.Fatalf("%d %s", status, text)
	}
	times := map[time.Time]bool{}
	for _, id := range ids {
		j, err := s.Get(t.Context(), id)
		check(t, err)
		if times[j.RunAt] = true; j.RunAt.Before(now) || j.RunAt.After(now.Add(10*time.Minute)) {
			t.Errorf("job %s runs at %s", id, j.RunAt)
		}
	}
	if len(times) < 8 {
		t.Errorf("the jobs run at %d times", len(times))
	}
	commandstest.Verify(t, s.Store)
}
