package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// askFunc runs one command line, without the program's name, and writes what it prints to out.
type askFunc func(ctx context.Context, out io.Writer, words []string) error

// askOn runs command lines of p on store in this process.
func askOn(p *program, store *ledger.Store) askFunc {
	return func(ctx context.Context, out io.Writer, words []string) error {
		verb := *p.Program
		verb.Opened, verb.Stderr, verb.Stdout = store, io.Discard, bufio.NewWriter(out)
		err := verb.Dispatch(ctx, words, (&program{&verb}).verbs())
		return cmp.Or(err, verb.Flush())
	}
}

// servedStore is a ledger that is served until its test ends.
type servedStore struct {
	ask   askFunc
	base  string      // http://127.0.0.1:PORT
	links chan string // login links

	access string   // the file of tokens
	pages  []string // the paths of all pages
}

// serveStore serves store by the verbs of this program at now, until the test ends.
func serveStore(t testing.TB, store *ledger.Store, now func() time.Time) servedStore {
	t.Helper()
	return serveWithin(t, store, now, time.Minute)
}

// serveWithin is serveStore where a search for jobs takes at most so long.
func serveWithin(t testing.TB, store *ledger.Store, now func() time.Time, search time.Duration) servedStore {
	t.Helper()
	return serveFrom(t, store, archiveFolder(store), now, func(c *web.Config) { c.Times.Search = search })
}

// serveErasing is serveStore as with --allow erase.
func serveErasing(t testing.TB, store *ledger.Store, now func() time.Time) servedStore {
	t.Helper()
	return serveFrom(t, store, archiveFolder(store), now, func(c *web.Config) { c.AllowErase = true })
}

// serveFrom is serveStore with another configuration, where the archive is in the folder dir; "": it is not
// known.
func serveFrom(t testing.TB, store *ledger.Store, dir string, now func() time.Time,
	change func(*web.Config)) servedStore {
	t.Helper()
	p := &program{&cli.Program{Stdout: bufio.NewWriter(io.Discard), Stderr: io.Discard, Now: now}}
	p.DB = store.DSN()
	links := make(chan string, 1)
	c := p.webConfig(store, dir)
	c.Access, c.ArchiveCache = filepath.Join(t.TempDir(), "access"), t.TempDir()
	c.Owner = "cli:ada@build"  // even if another user runs the test
	c.Times = web.DefaultTimes // but these tests do not depend on how fast the host is
	c.Times.Ask, c.Times.Search, c.Times.Body = 2*time.Minute, time.Minute, 10*time.Minute
	c.Report, c.Announce = t.Logf, func(link string) { links <- link }
	change(&c)
	server := web.New(c)
	listener, err := door.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return servedStore{askOn(p, store), "http://" + listener.Addr().String(), links, c.Access,
		server.Pages()}
}

// serveOn serves store as serveStore does. The function get has a session; header has pairs of name and
// value.
func serveOn(t *testing.T, store *ledger.Store, now func() time.Time) (ask askFunc,
	get func(path string, header ...string) (status int, head http.Header, body string)) {
	t.Helper()
	s := serveStore(t, store, now)
	return s.ask, getter(t, s)
}

// getter returns a function that has a session of s; header has pairs of name and value.
func getter(t *testing.T, s servedStore) func(path string, header ...string) (status int, head http.Header,
	body string) {
	t.Helper()
	base := s.base
	client := &http.Client{Jar: loggedIn(t, s)}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string, header ...string) (status int, head http.Header, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		check(t, err)
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
}

// loggedIn returns the cookie of a session.
func loggedIn(t testing.TB, s servedStore) http.CookieJar {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	defer client.CloseIdleConnections()
	_, code, _ := strings.Cut(<-s.links, "#")
	login, err := client.PostForm(s.base+"/login", url.Values{"code": {code}})
	if err != nil || login.StatusCode != http.StatusSeeOther {
		t.Fatalf("login: %v, %v", login, err)
	}
	_ = login.Body.Close()
	return jar
}

// TestServeAnswersAsTheVerbs compares the answers of the API with what the verbs print with --json, and its
// errors with their exit codes.
func TestServeAnswersAsTheVerbs(t *testing.T) {
	s := commandstest.New(t)
	jobs := make([]commands.Enqueue, 5)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Payload: []byte("a")}
	}
	made, err := s.Enqueue(t.Context(), "cli:test", jobs...)
	if err != nil {
		t.Fatal(err)
	}
	id := string(made[0].Job.ID)
	ask, get := serveOn(t, s.Store, noon)
	for path, words := range map[string]string{
		"/status":                           "status",
		"/queues":                           "queues",
		"/queues?at=pos:3":                  "queues --as-of pos:3",
		"/jobs?queue=mail":                  "list -q mail",
		"/jobs?at=pos:2":                    "list --as-of pos:2",
		"/jobs/" + id:                       "show " + id,
		"/jobs/" + id + "/why":              "why " + id,
		"/jobs/" + id[:25]:                  "show " + id[:25],
		"/events?kind=enqueued":             "events --kind enqueued",
		"/events?last=2":                    "events --last 2",
		"/jobs/" + id + "/events":           "history " + id,
		"/events/3":                         "events --after 2 --limit 1",
		"/queues/mail":                      "status",
		"/export":                           "export --no-bodies",
		"/diff?from=pos:1&to=pos:5&limit=1": "diff --from pos:1 --to pos:5 --limit 1",
		"/export?bodies=true":               "export",
	} {
		var want bytes.Buffer
		if err := ask(t.Context(), &want, append([]string{"--json"}, strings.Fields(words)...)); err != nil {
			t.Errorf("%s: %v", words, err)
		}
		line := want.String()
		if strings.HasPrefix(words, "show ") {
			line, _, _ = strings.Cut(line, "\n")
			line += "\n"
		}
		status, header, got := get("/api/v1"+path, "Accept", "application/x-ndjson")
		if status != http.StatusOK || got != line || header.Get("Jobledger-Pos") != "5" {
			t.Errorf("%s: %d\n%s, want\n%s", path, status, got, line)
		}
	}
	for path, want := range map[string]struct {
		status int
		exit   float64
	}{
		"/jobs/01KZZZZZZZZZZZZZZZZZZZZZZZ": {404, cli.ExitNoJob},
		"/jobs?state=lost":                 {400, cli.ExitUsage},
		"/jobs?at=pos:99":                  {400, cli.ExitUsage},
		"/jobs?limit=0":                    {400, -1},
		"/jobs?limit=1001":                 {400, -1},
		"/jobs?limit=99999999999999999999": {400, -1},
		"/jobs?db=/etc/passwd":             {400, -1},
		"/jobs/--help":                     {400, -1},
		"/events?follow=true":              {400, -1},
		"/queues?paused=maybe":             {400, -1},
		"/jobs?a;b":                        {400, -1},
		"/jobs?queue=a+b":                  {400, cli.ExitUsage},
		"/lanes?queue=a+b":                 {400, cli.ExitUsage},
		"/series?queue=a+b":                {400, cli.ExitUsage},
		"/failures?queue=a+b":              {400, cli.ExitUsage},
		"/depth?queue=a+b":                 {400, cli.ExitUsage},
		"/diff?from=pos:1&worker=w":        {400, -1},
		"/events/stream?queue=a+b":         {400, cli.ExitUsage},
		"/nothing":                         {404, -1},
		"/workers":                         {200, -1}, // none: an empty list
		"/queues?paused=true":              {200, -1},
	} {
		status, _, got := get("/api/v1" + path)
		var body map[string]any
		if err := json.Unmarshal([]byte(got), &body); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		exit, ran := body["exit"].(float64)
		if strings.Contains(path, "queue=") && !strings.Contains(got, "allowed:") {
			t.Errorf("%s does not say what is allowed: %s", path, got)
		}
		if status != want.status || ran != (want.exit >= 0) || ran && exit != want.exit {
			t.Errorf("%s: %d, %s, want %v", path, status, got, want)
		}
	}
	for path, want := range map[string]int{"/events?limit=2": 5, "/jobs?limit=2": 5,
		"/jobs?limit=2&at=pos:3": 3} {
		seen := map[string]bool{}
		for next := "/api/v1" + path; next != ""; {
			var page struct {
				Items []struct{ Job string }
				Next  *string
			}
			_, _, body := get(next)
			if err := json.Unmarshal([]byte(body), &page); err != nil {
				t.Fatal(err)
			}
			if len(page.Items) == 0 || len(page.Items) > 2 {
				t.Fatalf("%s: %d items", next, len(page.Items))
			}
			for _, item := range page.Items {
				if seen[item.Job] {
					t.Fatalf("%s: %s is there twice", next, item.Job)
				}
				seen[item.Job] = true
			}
			if next = ""; page.Next != nil {
				next = *page.Next
			}
		}
		if len(seen) != want {
			t.Errorf("%s: %d of all pages, want %d", path, len(seen), want)
		}
	}
}
