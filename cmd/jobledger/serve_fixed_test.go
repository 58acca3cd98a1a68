package main

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// A page as of a time, which may be relative, is at an address with the position and the time of that moment.
// So it is the same page when the clock has gone on and more has happened, and says how long nothing had
// happened. The API answers as it is asked.
func TestPagesFixTheirMoment(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	begin := s.Now
	j := s.enqueue(commands.Enqueue{Queue: "mail"})
	s.claim("w1", "mail")
	s.wait(3 * time.Hour)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	var clock atomic.Int64
	clock.Store(s.Now.UnixMicro())
	served := serveStore(t, s.Store, func() time.Time { return time.UnixMicro(clock.Load()).UTC() })
	client := &http.Client{Jar: loggedIn(t, served)}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) (status int, location, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.base+path, nil)
		check(t, err)
		answer, err := client.Do(r)
		check(t, err)
		defer answer.Body.Close()
		return answer.StatusCode, answer.Header.Get("Location"), readAll(t, answer)
	}
	const hour = "pos:2@2026-01-02T05:04:05Z"
	if begin.Add(2*time.Hour).UTC().Format(time.RFC3339) != strings.TrimPrefix(hour, "pos:2@") {
		t.Fatalf("the scenario begins at %s", begin)
	}
	want := map[string]string{ // by the address
		"/?at=-1h": "/?at=" + url.QueryEscape(hour),
		"/failures?queue=mail&from=-3h&at=-1h&worker=": "/failures?at=" + url.QueryEscape(hour) +
			"&from=-3h&queue=mail",
		"/jobs?state=queued&state=claimed&at=05:04:05": "/jobs?at=" + url.QueryEscape(hour) +
			"&state=queued&state=claimed",
		"/events?at=2026-01-02T07:04:05%2B02:00": "/events?at=" + url.QueryEscape(hour),
		"/jobs/" + string(j.ID) + "?at=-60m":     "/jobs/" + string(j.ID) + "?at=" + url.QueryEscape(hour),
		"/workers?at=now":                        "/workers?at=pos%3A3",
		"/queues/mail?at=-3h":                    "/queues/mail?at=pos%3A2",
		"/lanes?at=-4h":                          "/lanes?at=pos%3A0",
		"/workers/w1?at=-1h":                     "/workers/w1?at=" + url.QueryEscape(hour),
		"/diff?from=pos:1&to=pos:2&at=-1h": "/diff?at=" + url.QueryEscape(hour) +
			"&from=pos%3A1&to=pos%3A2",
		"/incident?from=pos:1&at=-1h":   "/incident?at=" + url.QueryEscape(hour) + "&from=pos%3A1",
		"/integrity?at=-1h":             "/integrity?at=" + url.QueryEscape(hour),
		"/?at=pos:2":                    "",
		"/":                             "",
		"/?at=" + url.QueryEscape(hour): "",
		"/api/v1/status?at=-1h":         "",
		"/api/v1/jobs?at=" + url.QueryEscape(hour): "",
	}
	for path, location := range want {
		status, got, body := get(path)
		if got != location || (status == http.StatusSeeOther) != (location != "") || status >= 400 {
			t.Errorf("%s: %d %s, want %s %.300s", path, status, got, location, body)
		}
	}
	for path, want := range map[string]int{"/?at=+1h": 400, "/?at=nothing": 400, "/?at=-1h&at=-2h": 400,
		"/?at=-1h&queue=mail": 400, "/?at=pos:1@nothing": 400, "/?at=pos:1@2030-01-01T00:00:00Z": 400,
		"/tail?at=-1h": 400} {
		if status, location, _ := get(strings.ReplaceAll(path, "+", "%2B")); status != want {
			t.Errorf("%s: %d %s", path, status, location)
		}
	}
	path := want["/?at=-1h"]
	_, _, before := get(path)
	clock.Add(time.Hour.Microseconds())
	s.wait(time.Hour)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	_, _, after := get(path)
	for _, page := range []string{before, after} {
		for _, part := range []string{">2026-01-02 05:04:05&#43;00:00</time>", "pos 2 of", "silent",
			`value="2026-01-02T05:04:05Z"`, "as-of pos:2@2026-01-02T05:04:05Z"} {
			if !strings.Contains(page, part) {
				t.Errorf("the page as of an hour before has no %q", part)
			}
		}
	}
	commandstest.Verify(t, s.Store)
}
