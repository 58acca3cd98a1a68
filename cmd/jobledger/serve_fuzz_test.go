package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// fuzzedPaths are what takes parameters: lists, moments, pictures, and the pages.
var fuzzedPaths = []string{"/api/v1/jobs", "/api/v1/events", "/api/v1/status", "/api/v1/lanes",
	"/api/v1/series", "/api/v1/failures", "/api/v1/moments", "/api/v1/diff", "/api/v1/reports/causes",
	"/jobs", "/events", "/", "/lanes",
	"/failures", "/diff", "/workers", "/queues/mail", "/incident"}

// Whatever the parameters are, the answer is what was asked for or says what is wrong with them.
func FuzzParameters(f *testing.F) {
	scenario := commandstest.New(f)
	if _, err := scenario.Enqueue(f.Context(), "cli:test", commands.Enqueue{Queue: "mail", Key: "k",
		Tags: map[string]string{"a": "b"}, Payload: []byte("a")}); err != nil {
		f.Fatal(err)
	}
	scenario.Store.Now = time.Now
	s := serveStore(f, scenario.Store, time.Now)
	token, _, err := access.Create(s.access, access.Request{Name: "all", Scopes: access.Scopes,
		Queues: []string{"*"}}, time.Now())
	if err != nil {
		f.Fatal(err)
	}
	client := &http.Client{Jar: loggedIn(f, s)}
	f.Cleanup(client.CloseIdleConnections)
	for _, seed := range []string{"", "at=pos:1", "at=pos:0", "at=pos:-1", "at=pos:99999999999999999999",
		"at=2026-03-15T01:05:57Z", "at=-2h", "at=0001-01-01T00:00:00Z", "at=9999-12-31T23:59:59.999999999Z",
		"from=pos:1&to=pos:1", "from=-2h&to=now", "from=pos:2&to=pos:1", "from=-999999999h", "to=2300-01-01",
		"queue=mail&state=queued&tag=a%3Db&key=k&by=finished&limit=1000", "queue=Mail", "tag=%3D", "error=%00",
		"exit=256", "kind=enqueued&kind=claimed&after=0&limit=1", "last=0", "last=1000&after=1", "after=-1",
		"px=0", "px=1200", "px=99999999999", "job=01K", "worker=%ff", "a;b", "%zz", "at=&at=", "step=0",
		"at=pos:1&from=pos:1&to=pos:1&queue=mail&worker=w", "window=-1h", "every=1ns",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range fuzzedPaths {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, nil)
			check(t, err)
			r.URL.RawQuery = query
			if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '#' }) {
				return // no request line has them
			}
			if strings.HasPrefix(path, "/api") {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			answer, err := client.Do(r)
			check(t, err)
			_ = answer.Body.Close()
			if answer.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s?%s: %s", path, query, answer.Status)
			}
		}
	})
}
