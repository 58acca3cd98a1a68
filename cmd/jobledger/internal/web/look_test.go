package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/frame"
)

// The theme and the time of the strip are kept in cookies, which the server reads: the first byte has them.
func TestLookIsKeptInCookies(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	session, _ := s.login()
	for _, c := range []struct {
		form url.Values
		want int
		set  string
	}{
		{url.Values{"theme": {"dark"}, "back": {"/jobs?state=failed"}}, http.StatusSeeOther,
			"jobledger-theme=dark"},
		{url.Values{"strip": {"7 d"}, "back": {"//evil.example"}}, http.StatusSeeOther, "jobledger-strip=7_d"},
		{url.Values{"theme": {"pink"}}, http.StatusBadRequest, ""},
		{url.Values{"strip": {"1 y"}}, http.StatusBadRequest, ""},
	} {
		answer, page := s.do("POST", "/look", c.form, "Cookie", session)
		set := answer.Header.Get("Set-Cookie")
		if answer.StatusCode != c.want || !strings.HasPrefix(set, c.set) {
			t.Errorf("%v: %s, cookie %q\n%s", c.form, answer.Status, set, page)
		}
		if to := answer.Header.Get("Location"); strings.Contains(to, "evil") || c.form.Get("theme") == "dark" &&
			!strings.HasSuffix(to, "/jobs?state=failed") {
			t.Errorf("%v leads to %q", c.form, to)
		}
	}
	const plain = `<html lang="en">`
	for cookie, want := range map[string]string{"": plain, "; jobledger-theme=auto": plain,
		`; jobledger-theme="><b`: plain, "; jobledger-theme=dark": `<html lang="en" data-theme="dark">`} {
		if _, page := s.do("GET", "/", nil, "Cookie", session+cookie); !strings.Contains(page, want) {
			t.Errorf("with the cookie %q there is no %s", cookie, want)
		}
	}
}

// If nothing is, people get a page that leads on, and programs JSON.
func TestUnknownPathLeadsOn(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	session, _ := s.login()
	for _, path := range []string{"/nosuch", "/nosuch/x", "/api/v2"} {
		answer, page := s.do("GET", path, nil, "Cookie", session, "Accept", "text/html,*/*;q=0.8")
		for _, part := range []string{`href="/jobs"`, `role="search"`, "there is nothing at this address"} {
			if answer.StatusCode != http.StatusNotFound || !strings.Contains(page, part) {
				t.Errorf("%s: %s, no %s in\n%s", path, answer.Status, part, page)
			}
		}
		answer, body := s.do("GET", path, nil, "Cookie", session, "Accept", "*/*")
		if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%s for a program: %s, %s", path, kind, body)
		}
	}
	answer, _ := s.do("GET", "/nosuch", nil, "Accept", "text/html")
	if answer.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %s, want the way to the login", answer.Status)
	}
}

// There is one stylesheet, and it is small.
func TestStylesheetIsSmall(t *testing.T) {
	content, addresses := frame.Assets()
	const most = 20_000
	if n := len(content[strings.TrimPrefix(addresses["style.css"], "/assets/")]); n == 0 || n > most {
		t.Errorf("the stylesheet has %d bytes, want at most %d", n, most)
	}
}
