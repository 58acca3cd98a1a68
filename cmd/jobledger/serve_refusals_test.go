package main

import (
	"database/sql"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/ledgertest"
)

// A refusal is a page that leads on: what was typed stands in its form, to be sent again, even if the ledger
// is locked or the session has ended; a time says how times are written; and the login leads back to the page
// that was asked for, which is one of this server.
func TestRefusalsLeadOn(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	id := string(s.enqueue(commands.Enqueue{Queue: "mail"}).ID)
	served := serveStore(t, s.Store, noon)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := reader{t, served.base, &http.Client{Jar: loggedIn(t, served), CheckRedirect: stay}}
	t.Cleanup(b.client.CloseIdleConnections)
	out := reader{t, served.base, &http.Client{CheckRedirect: stay}}
	t.Cleanup(out.client.CloseIdleConnections)
	has := func(what, page string, all ...string) {
		t.Helper()
		for _, text := range all {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in\n%s", what, text, page)
			}
		}
	}
	before := s.Tail()
	status, _, page := b.do("GET", "/jobs?from=half+past+two&queue=mail", nil)
	if has("a time", page, `name="from" value="half past two"`, "yesterday 02:00",
		`name="queue" value="mail"`); status != 400 {
		t.Errorf("a time: %d", status)
	}
	status, _, page = b.do("POST", "/jobs/"+id+"/reschedule", url.Values{"seq": {"1"}, "run_at": {"soonish"},
		"reason": {"later"}})
	if has("a time of a form", page, `name="run_at" value="soonish"`,
		`name="reason" value="later"`); status != 400 {
		t.Errorf("a time of a form: %d", status)
	}
	status, _, page = out.do("POST", "/queues/mail/pause", url.Values{"reason": {"smtp is down"}})
	if has("an ended session", page, "your session has ended", `href="/login"`, `action="/queues/mail/pause"`,
		`name="reason" value="smtp is down"`); status != 401 || strings.Contains(page, `class="side"`) {
		t.Errorf("an ended session: %d\n%s", status, page)
	}
	form := b.form(page, "/queues/mail/pause", "", nil)
	if s.Tail() != before {
		t.Errorf("refusals have recorded something")
	}
	if status, to, _ := b.do("POST", "/queues/mail/pause", form); status != 303 || to != "/queues/mail" {
		t.Errorf("the same form after the login: %d to %s", status, to)
	}
	for path, next := range map[string]string{"/": "", "/jobs?queue=mail": "/jobs?queue=mail",
		"/queues/mail/limit": "/queues/mail/limit"} {
		want := "/login"
		if next != "" {
			want += "?" + url.Values{"next": {next}}.Encode()
		}
		if status, to, _ := out.do("GET", path, nil); status != 303 || to != want {
			t.Errorf("%s without a session: %d to %s, want %s", path, status, to, want)
		}
	}
	_, _, page = out.do("GET", "/login?next=%2Fjobs%3Fqueue%3Dmail", nil)
	_, _, page = out.do("POST", "/login", out.form(page, "/login", "", map[string]string{"code": "wrong"}))
	has("a wrong code", page, `name="next" value="/jobs?queue=mail"`)
	for _, bad := range []string{"//evil.example/", "https://evil.example/", `/\evil.example`, "/login", "jobs",
		""} {
		_, _, page := out.do("GET", "/login?"+url.Values{"next": {bad}}.Encode(), nil)
		if strings.Contains(page, `name="next"`) {
			t.Errorf("next=%s is on the page", bad)
		}
	}
	commandstest.Verify(t, s.Store)
}

// A form that finds the ledger locked is answered with itself, filled in, and can be sent again.
func TestLockedLedgerKeepsForm(t *testing.T) {
	t.Parallel()
	if ledgertest.OnPostgres(t) {
		return // no process locks all of a ledger there
	}
	s := crowded(t)
	served := serveFrom(t, s.Store, "", noon, func(c *web.Config) { c.Times.Ask = 2 * time.Second })
	b := reader{t, served.base, &http.Client{Jar: loggedIn(t, served)}}
	t.Cleanup(b.client.CloseIdleConnections)
	_, _, page := b.do("GET", "/queues/render/limit", nil)
	limits := b.form(page, "/queues/render/limit", "", map[string]string{"running": "6", "reason": "disk"})
	limits.Set("do", "set")
	limits.Set("would", "at most 6 at once, at most 3 of each group")
	db, err := sql.Open("sqlite", s.Store.Path())
	check(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)
	status, _, page := b.do("POST", "/queues/render/pause", url.Values{"reason": {"smtp is down"}})
	if status != 503 || !strings.Contains(page, `name="reason" value="smtp is down"`) {
		t.Errorf("a pause: %d\n%s", status, page)
	}
	status, _, page = b.do("POST", "/queues/render/limit", limits)
	if status != 503 || !strings.Contains(page, "the ledger is busy") ||
		!strings.Contains(page, `name="running" value="6"`) ||
		!strings.Contains(page, `value="disk"`) {
		t.Errorf("a limit: %d\n%s", status, page)
	}
	_, err = db.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	form := b.form(page, "/queues/render/limit", "", nil)
	form.Set("do", "set")
	if status, _, page := b.do("POST", "/queues/render/limit", form); status != 200 || !strings.Contains(page,
		"at most 6 at once, at most 3 of each group") {
		t.Errorf("the limit, once more: %d\n%s", status, page)
	}
	commandstest.Verify(t, s.Store)
}

// A link of another site leads to its page, not to the login: the browser does not send the cookie with such
// a request, and is asked to send the request once more, and only once.
func TestLinkOfAnotherSiteNeedsNoLogin(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	served := serveStore(t, s.Store, noon)
	jar, err := cookiejar.New(nil)
	check(t, err)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	out := reader{t, served.base, &http.Client{Jar: jar, CheckRedirect: stay}}
	in := reader{t, served.base, &http.Client{Jar: loggedIn(t, served), CheckRedirect: stay}}
	t.Cleanup(out.client.CloseIdleConnections)
	t.Cleanup(in.client.CloseIdleConnections)
	for _, site := range []string{"cross-site", "same-site"} {
		jar, err = cookiejar.New(nil)
		check(t, err)
		out.client.Jar = jar
		status, to, page := out.do("GET", "/jobs?queue=mail", nil, "Sec-Fetch-Site", site)
		if status != 200 || to != "" || !strings.Contains(page, `<meta http-equiv="refresh" content="0">`) ||
			len(page) > 100 {
			t.Errorf("a link of another site, %s: %d to %s\n%s", site, status, to, page)
		}
		for _, again := range []string{"same-origin", site} { // whatever the browser says of the second one
			if status, to, _ := out.do("GET", "/jobs?queue=mail", nil, "Sec-Fetch-Site", again); status != 303 ||
				to != "/login?next=%2Fjobs%3Fqueue%3Dmail" {
				t.Errorf("once more, without a session, %s: %d to %s", again, status, to)
			}
		}
	}
	if status, _, page := in.do("GET", "/jobs?queue=mail", nil, "Sec-Fetch-Site", "cross-site"); status != 200 ||
		!strings.Contains(page, "<h1>Jobs</h1>") {
		t.Errorf("with a session: %d\n%s", status, page)
	}
	out.client.Jar = nil
	for path, want := range map[string]int{"/api/v1/jobs": 401, "/login": 200, "/nosuch": 401} {
		status, _, page := out.do("GET", path, nil, "Sec-Fetch-Site", "cross-site", "Accept", "application/json")
		if status != want || strings.Contains(page, "refresh") {
			t.Errorf("%s: %d, want %d\n%s", path, status, want, page)
		}
	}
	commandstest.Verify(t, s.Store)
}
