package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// reader looks at pages and sends their forms as a browser without scripts does.
type reader struct {
	*testing.T
	base   string
	client *http.Client
}

// do sends a request with the headers of a browser, and others: pairs of name and value.
func (b reader) do(method, path string, form url.Values, header ...string) (status int, to, page string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	check(b, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	if method == http.MethodPost {
		r.Header.Set("Origin", b.base)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	answer, err := b.client.Do(r)
	check(b, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(b, err)
	return answer.StatusCode, answer.Header.Get("Location"), string(text)
}

// form is what the form of a page with this action sends, with button, where values were typed in or chosen,
// and each box was ticked.
func (b reader) form(page, action, button string, typed map[string]string) url.Values {
	b.Helper()
	values, found := url.Values{}, false
	var fill func(n *node)
	fill = func(n *node) {
		name, value := n.attr["name"], n.attr["value"]
		if text, ok := typed[name]; ok {
			value = text
		}
		switch {
		case n.name == "button" && name != "" && n.attr["value"] == button:
			values.Set(name, button)
		case n.name == "select" && name != "":
			for _, option := range n.nodes {
				value, has := option.attr["value"]
				if !has {
					value = option.text
				}
				if !values.Has(name) || value == typed[name] {
					values.Set(name, value)
				}
			}
		case n.name == "textarea" && name != "":
			if _, ok := typed[name]; !ok {
				value = strings.TrimPrefix(n.text, "\n")
			}
			values.Set(name, value)
		case n.name == "input" && name != "":
			values.Add(name, value)
		}
		for _, in := range n.nodes {
			fill(in)
		}
	}
	var look func(n *node)
	look = func(n *node) {
		if n.name == "form" && n.attr["method"] == "post" && n.attr["action"] == action {
			found = true
			fill(n)
			return
		}
		for _, in := range n.nodes {
			look(in)
		}
	}
	if look(parsePage(b.T, page)); !found {
		b.Fatalf("there is no form for %s in\n%s", action, page)
	}
	return values
}

// An operator without scripts logs in, acts on a job, on a queue and on many jobs, and logs out, each with
// the form of a page. The same form of a page of another origin, or without the session, changes nothing.
func TestFormsNeedNoScript(t *testing.T) {
	s := newScenario(t)
	var id string
	for range 3 {
		id = string(s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a"),
			Tags: map[string]string{"batch": "7"}}).ID)
	}
	served := serveStore(t, s.Store, noon)
	jar, err := cookiejar.New(nil)
	check(t, err)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b := reader{t, served.base, &http.Client{Jar: jar, CheckRedirect: stay}}
	t.Cleanup(b.client.CloseIdleConnections)
	tail := func() (tail int64) {
		check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			tail, err = tx.Tail(t.Context())
			return err
		}))
		return tail
	}
	_, code, _ := strings.Cut(<-served.links, "#")
	_, _, page := b.do("GET", "/login", nil)
	login := b.form(page, "/login", "", map[string]string{"code": code})
	elsewhere := [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}}
	for _, foreign := range elsewhere {
		if status, _, _ := b.do("POST", "/login", login, foreign...); status != http.StatusForbidden {
			t.Errorf("a login from %v: %d", foreign, status)
		}
	}
	if status, to, text := b.do("POST", "/login", login); status != http.StatusSeeOther || to != "/" {
		t.Fatalf("login: %d to %s\n%s", status, to, text)
	}
	without := reader{t, b.base, &http.Client{CheckRedirect: stay}}
	for _, c := range []struct {
		at, action, button string
		typed              map[string]string
		then               string // what the page says to which the form leads
		events             int64
	}{
		{"/jobs/" + id, "/jobs/" + id + "/cancel", "", map[string]string{"reason": "twice"}, "cancelled", 1},
		{"/jobs/" + id, "/jobs/" + id + "/retry", "", map[string]string{"reason": "not twice"}, "queued", 1},
		{"/queues/mail", "/queues/mail/pause", "", map[string]string{"reason": "smtp is down"}, "paused", 1},
		{"/queues/mail", "/queues/mail/resume", "", map[string]string{"reason": "it is back"}, "mail", 1},
		{"/jobs?tag=batch%3D7", "/acts", "no", map[string]string{"act": "cancel"}, "Nothing was changed yet", 0},
	} {
		_, _, page := b.do("GET", c.at, nil)
		form, before := b.form(page, c.action, c.button, c.typed), tail()
		for _, foreign := range elsewhere {
			if status, _, _ := b.do("POST", c.action, form, foreign...); status != http.StatusForbidden {
				t.Errorf("%s from %v: %d", c.action, foreign, status)
			}
		}
		refused := http.StatusUnauthorized // with what was typed
		if form.Get("reason") == "" {
			refused = http.StatusSeeOther
		}
		if status, to, _ := without.do("POST", c.action, form); status != refused {
			t.Errorf("%s without a session: %d to %s", c.action, status, to)
		}
		if tail() != before {
			t.Fatalf("%s: forms that are refused have recorded something", c.action)
		}
		status, to, page := b.do("POST", c.action, form)
		if status == http.StatusSeeOther {
			to, _, _ = strings.Cut(to, "#")
			status, _, page = b.do("GET", to, nil)
		}
		if status != http.StatusOK || !strings.Contains(page, c.then) || tail() != before+c.events {
			t.Errorf("%s: %d, %d events, and no %q in\n%s", c.action, status, tail()-before, c.then, page)
		}
		if c.action == "/acts" { // the page asks once more
			form = b.form(page, "/acts", "yes", map[string]string{"reason": "wrong batch"})
			status, to, _ = b.do("POST", "/acts", form)
			for range 2 { // to look again does nothing
				if _, _, page = b.do("GET", to, nil); status != 303 || !strings.Contains(page,
					"<strong>3</strong> done") || !strings.Contains(page, "wrong batch") {
					t.Errorf("many jobs: %d to %s: %s", status, to, page)
				}
			}
		}
	}
	// curl and the like send neither header; the cookie alone does it.
	_, _, page = b.do("GET", "/integrity", nil)
	if status, to, _ := b.do("POST", "/integrity", b.form(page, "/integrity", "", nil), "Origin", "",
		"Sec-Fetch-Site", ""); status != http.StatusSeeOther || to != "/integrity" {
		t.Errorf("a check, without the headers of a browser: %d to %s", status, to)
	}
	b.do("POST", "/logout", b.form(page, "/logout", "", nil))
	if status, to, _ := b.do("GET", "/", nil); status != http.StatusSeeOther || to != "/login" {
		t.Errorf("after the logout: %d to %s", status, to)
	}
	commandstest.Verify(t, s.Store)
}
