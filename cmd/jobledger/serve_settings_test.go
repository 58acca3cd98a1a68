package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
)

// crowded is a queue render with 40 jobs of three groups, of which 5 are held, and limits; a queue mail with
// defaults; a queue sms with a limit alone.
func crowded(t *testing.T) *scenario {
	t.Helper()
	s := newScenario(t)
	ctx := t.Context()
	for i := range 40 {
		s.enqueue(commands.Enqueue{Queue: "render", Group: []string{"acme", "globex", "umbrella"}[i%3]})
	}
	s.enqueue(commands.Enqueue{Queue: "mail"})
	for range 5 {
		s.claim("charlie", "render")
	}
	set := func(changed bool, err error) {
		check(t, err)
		if !changed {
			t.Fatal("nothing was set")
		}
	}
	set(s.Limit(ctx, "cli:ada@build7", "render", limit.Spec{Running: 12, PerGroup: 3}, "the farm is small"))
	set(s.LimitGroup(ctx, "cli:ada@build7", "render", "acme", limit.GroupSpec{Running: 6}, "acme has paid"))
	set(s.Limit(ctx, "cli:ada@build7", "sms", limit.Spec{Running: 2}, "two at a time"))
	set(s.SetDefaults(ctx, "cli:ada@build7", "mail", defaults.Spec{MaxAttempts: 8}, "it is slow"))
	return s
}

// asker returns a function that asks the API with a token for scopes of queues.
func asker(t *testing.T, s servedStore, queues []string, scopes ...access.Scope) func(method, path,
	body string, header ...string) (int, http.Header, string) {
	t.Helper()
	token, _, err := access.Create(s.access, access.Request{Name: fmt.Sprintf("t%d", time.Now().UnixNano()),
		Scopes: scopes, Queues: queues}, time.Now())
	check(t, err)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	return func(method, path, body string, header ...string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.base+"/api/v1"+path, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
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

// What is set of a queue is read, changed and taken away over HTTP, by its ETag only if no other has changed
// it since. The lists are those that the commands print, now and as of a moment.
func TestSettingsOfQueue(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	served := serveStore(t, s.Store, noon)
	ask := asker(t, served, []string{"*"}, access.Read, access.Operate)
	items := func(path string) (all []string) {
		t.Helper()
		_, _, text := ask("GET", path, "")
		var list struct{ Items []json.RawMessage }
		check(t, json.Unmarshal([]byte(text), &list))
		for _, one := range list.Items {
			all = append(all, string(one)+"\n")
		}
		return all
	}
	before := s.Tail()
	for path, words := range map[string][]string{"/limits": {"--json", "limit"},
		"/defaults": {"--json", "queue", "show"},
		fmt.Sprintf("/limits?at=pos:%d", before-3): {"--json", "limit", fmt.Sprintf("--as-of=pos:%d", before-3)},
		fmt.Sprintf("/defaults?at=pos:%d", before-1): {"--json", "queue", "show",
			fmt.Sprintf("--as-of=pos:%d", before-1)},
	} {
		var out strings.Builder
		err := served.ask(t.Context(), &out, words)
		if got := strings.Join(items(path), ""); got != out.String() && err == nil {
			t.Errorf("%s:\n%s\nand jobledger %v:\n%s", path, got, words, out.String())
		}
	}
	type request struct {
		method, path, body, match string
		status                    int
		has                       string
	}
	tag := func(path string) string {
		t.Helper()
		_, head, _ := ask("GET", path, "")
		return head.Get("ETag")
	}
	render, mail := tag("/queues/render/limit"), tag("/queues/mail/defaults")
	for _, c := range []request{
		{"GET", "/queues/render/limit", "", "", 200, `"running":12`},
		{"GET", "/queues/nothing/limit", "", "", 200, `"running":null`},
		{"PUT", "/queues/render/limit", `{"running": 3, "reason": "less"}`, render, 200, `"changed":true`},
		{"PUT", "/queues/render/limit", `{"running": 4, "reason": "less"}`, render, 412, `at most 3 at once`},
		{"PUT", "/queues/render/groups/acme/limit", `{"running": 4}`, render, 412, `moved_on`},
		{"PUT", "/queues/render/groups/acme/limit", `{"rate": 10, "rate_per": 60}`, "", 200, `"rate":10`},
		{"PUT", "/queues/render/groups/acme/limit", `{"per_group": 4}`, "", 400, `per_group`},
		{"PUT", "/queues/render/limit", `{"rate": 10, "reason": "r"}`, "", 400, `"field":"rate_per"`},
		{"PUT", "/queues/render/limit", `{"running": -1}`, "", 400, `"field":"running"`},
		{"PUT", "/queues/new/limit", `{"running": 7}`, `"0"`, 200, `"running":7`},
		{"PUT", "/queues/new/limit", `{"running": 8}`, `"0"`, 412, `at most 7 at once`},
		{"DELETE", "/queues/render/groups/acme/limit?reason=enough", "", "", 200, `"reason":"enough"`},
		{"DELETE", "/queues/render/limit?reason=enough&x=1", "", "", 400, `"field":"x"`},
		{"DELETE", "/queues/render/limit?reason=enough", "", "", 200, `"running":null`},
		{"PUT", "/queues/mail/defaults", `{"max_attempts": 3, "max_runtime": 300, "backoff": {"min": 1, "max": 60,
			"factor": 2}}`, mail, 200, `"max_runtime":300`},
		{"PUT", "/queues/mail/defaults", `{"max_attempts": 4}`, mail, 412, `up to 3 attempts`},
		{"PUT", "/queues/mail/defaults", `{"max_attempts": -4}`, "", 400, `"field":"max_attempts"`},
		{"PUT", "/queues/mail/defaults", `{"backoff": {"min": 5}}`, "", 400, `"field":"backoff"`},
		{"DELETE", "/queues/mail/defaults", "", "", 200, `"max_attempts":null`},
	} {
		was := s.Tail()
		var header []string
		if c.match != "" {
			header = []string{"If-Match", c.match}
		}
		status, head, text := ask(c.method, c.path, c.body, header...)
		if status != c.status || !strings.Contains(text, c.has) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, text)
		}
		if c.status == 200 && head.Get("ETag") == "" || c.status != 200 && s.Tail() != was {
			t.Errorf("%s %s %s: tag %q, and the ledger went on by %d", c.method, c.path, c.body, head.Get("ETag"),
				s.Tail()-was)
		}
	}
	own := asker(t, served, []string{"render"}, access.Operate)
	if status, _, text := own("PUT", "/queues/render/limit", `{"running": 9}`); status != 200 {
		t.Errorf("a token for the queue: %d %s", status, text)
	}
	if status, _, text := own("PUT", "/queues/mail/limit", `{"running": 9}`); status != 403 {
		t.Errorf("a token for another queue: %d %s", status, text)
	}
	commandstest.Verify(t, s.Store)
}

// settings is a browser without scripts at the forms of what is set.
func settings(t *testing.T, s *scenario) (b reader, served servedStore) {
	t.Helper()
	served = serveStore(t, s.Store, func() time.Time { return s.Now })
	client := &http.Client{Jar: loggedIn(t, served), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	t.Cleanup(client.CloseIdleConnections)
	return reader{t, served.base, client}, served
}

// A limit and defaults are set by a form that is filled in, says first what it would do, wants a reason, and
// keeps what was typed where it is refused. Of two tabs, the second learns what the first has set.
func TestSettingForms(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	b, served := settings(t, s)
	const limits, defaults = "/queues/render/limit", "/queues/mail/defaults"
	type typed = map[string]string
	send := func(path, page, button string, values typed) (status int, to, answer string) {
		t.Helper()
		form := b.form(page, path, button, values)
		form.Set("do", button)
		return b.do("POST", path, form)
	}
	want := func(what, page string, all ...string) {
		t.Helper()
		for _, text := range all {
			if !strings.Contains(page, text) {
				t.Errorf("%s: no %q in\n%s", what, text, page)
			}
		}
	}
	_, _, first := b.do("GET", limits, nil)
	_, _, second := b.do("GET", limits, nil)
	want("the form", first, `name="running" value="12"`, `name="per_group" value="3"`, "the farm is small")
	before := s.Tail()
	_, _, page := send(limits, first, "preview", typed{"running": "6"})
	want("bounds above what runs", page, "12 → 6 at once: 1 more may start now, of 35 that wait",
		"Set: at most 6 at once, at most 3 of each group",
		"jobledger limit --queue=render --running=6 --per-group=3")
	_, _, page = send(limits, page, "preview", typed{"running": "3", "reason": "disk"})
	want("bounds below", page, "12 → 3 at once: nothing stops; 5 are at work, and the next one starts when",
		`value="disk"`)
	if status, _, page := send(limits, page, "set", typed{"reason": " "}); status != 400 {
		t.Errorf("without a reason: %d", status)
	} else {
		want("without a reason", page, `id="wrong-reason"`, "say why", `name="running" value="3"`)
	}
	for field, bad := range map[string]string{"running": "many", "per_group": "0", "rate": "100", "burst": "2",
		"ageing": "1 parsec", "per_group_rate": "1/0s", "per_group_burst": "3"} {
		status, _, page := send(limits, first, "set", typed{field: bad, "reason": "kept"})
		if want(field, page, `id="wrong-`+field+`"`, `value="`+bad+`"`, `value="kept"`); status != 400 {
			t.Errorf("%s %s: %d", field, bad, status)
		}
	}
	if status, _, page := send(limits, page, "set", typed{"running": "4", "reason": "disk"}); status != 200 {
		t.Errorf("other than what was shown: %d", status)
	} else {
		want("other than what was shown", page, "Set: at most 4 at once")
	}
	if s.Tail() != before {
		t.Errorf("the ledger went on by %d", s.Tail()-before)
	}
	if status, to, page := send(limits, page, "set", nil); status != 303 || to != "/queues/render" {
		t.Errorf("set: %d to %s\n%s", status, to, page)
	}
	_, _, page = send(limits, second, "preview", typed{"running": "9", "reason": "mine"})
	page = strings.Replace(page, fmt.Sprintf(`name="seen" value="%d"`, s.Tail()), second[strings.Index(second,
		`name="seen"`):strings.Index(second, `name="seen"`)+len(`name="seen" value="00"`)], 1)
	status, _, page := send(limits, page, "set", nil)
	if want("the second tab", page, "http:", "has set this since you saw it", "at most 3 at once",
		`name="running" value="9"`, `value="mine"`); status != 412 || s.Tail() != before+1 {
		t.Errorf("the second tab: %d, the ledger went on by %d", status, s.Tail()-before)
	}
	if status, _, page = send(limits, page, "set", nil); status != 303 {
		t.Errorf("the second tab, once more: %d\n%s", status, page)
	}
	const group = limits + "?group=acme"
	_, _, page = b.do("GET", group, nil)
	_, _, page = send(group, page, "preview", typed{"running": "", "reason": "no exception"})
	want("an exception goes", page, "6 → any number at once", "--group=acme --off")
	if status, _, page = send(group, page, "set", nil); status != 303 {
		t.Errorf("an exception goes: %d\n%s", status, page)
	}
	_, _, page = b.do("GET", defaults, nil)
	_, _, page = send(defaults, page, "preview", typed{"max_attempts": "4", "backoff": "min 2s",
		"reason": "faster"})
	want("defaults", page, "up to 4 attempts, backoff min 2s, max 1h, factor 2",
		"1 job of the queue that did not end yet keeps what it has", "queue set --queue=mail --max-attempts=4")
	if status, _, page = send(defaults, page, "set", nil); status != 303 {
		t.Errorf("defaults: %d\n%s", status, page)
	}
	read, _, err := access.Create(served.access, access.Request{Name: "reader",
		Scopes: []access.Scope{access.Read}, Queues: []string{"*"}}, time.Now())
	check(t, err)
	for path, says := range map[string]int{"/queues/render": 200, limits: 403, defaults: 403} {
		status, _, page := b.do("GET", path, nil, "Authorization", "Bearer "+read)
		if status != says || strings.Contains(page, "Edit limits") {
			t.Errorf("%s for one who may only read: %d\n%s", path, status, page)
		}
	}
	status, _, _ = b.do("POST", limits, url.Values{"seen": {"1"}}, "Authorization", "Bearer "+read)
	if status != 403 {
		t.Errorf("a limit by one who may only read: %d", status)
	}
	commandstest.Verify(t, s.Store)
}

// The list of queues has every one that was used, is served or has anything set, in the order that was asked
// for, and its number stands in the navigation. The page of a queue has the numbers of the commands; also one
// in which no job ever was has a page.
func TestQueuesShowWhatIsSet(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	check(t, s.WorkerStarted(t.Context(), s.worker("delta"), []string{"idle"}, nil))
	b, _ := settings(t, s)
	status, _, page := b.do("GET", "/queues", nil)
	rows := tableOf(t, page, "<main")
	var names []string
	for _, row := range rows[1:] {
		names = append(names, strings.Fields(row[0])[0])
	}
	if got := strings.Join(names, " "); status != 200 || got != "idle mail render sms" {
		t.Errorf("%d: the queues %s", status, got)
	}
	if !strings.Contains(page, `>Queues <span class="count">4</span>`) {
		t.Errorf("the navigation has no 4:\n%s", page)
	}
	for asked, first := range map[string]string{"ready": "render", "-ready": "idle", "queue": "idle",
		"-queue": "sms", "held": "render", "workers": "idle"} {
		_, _, page := b.do("GET", "/queues?sort="+asked, nil)
		if got := tableOf(t, page, "<main")[1][0]; got != first {
			t.Errorf("by %s the first is %s", asked, got)
		}
	}
	status, _, page = b.do("GET", "/queues?sort=size", nil)
	if status != 400 || !strings.Contains(page, "ready, oldest") {
		t.Errorf("by size: %d\n%s", status, page)
	}
	render := rows[3]
	if render[1] != "35" || render[4] != "5 of 12" {
		t.Errorf("the row of render: %q", render)
	}
	_, _, page = b.do("GET", "/queues/render", nil)
	bounds := tableOf(t, page, "use of limits")
	for i, want := range [][]string{{"whole queue", "5", "12", "", "35"},
		{"group acme exception Edit…", "2", "6", "", "12"}, {"group globex", "2", "3", "", "11"},
		{"group umbrella", "1", "3", "", "12"}} {
		if got := bounds[i+1]; strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("row %d of the limits: %q, want %q", i, got, want)
		}
	}
	for _, text := range []string{"the farm is small", "5, as without a default", ">35</a>", "of 12 at most"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page of render has no %q:\n%s", text, page)
		}
	}
	for path, says := range map[string]string{"/queues/nowhere": "No job was ever in this queue",
		"/queues/idle": "delta", "/queues/sms": "at most 2 at once", "/queues/mail": "it is slow"} {
		if status, _, page := b.do("GET", path, nil); status != 200 || !strings.Contains(page, says) {
			t.Errorf("%s: %d, no %q in\n%s", path, status, says, page)
		}
	}
	past := fmt.Sprintf("?at=pos:%d", s.Tail()-2) // before the defaults and the worker
	_, _, page = b.do("GET", "/queues"+past, nil)
	if rows := tableOf(t, page, "<main"); len(rows) != 4 || rows[3][0] != "sms" {
		t.Errorf("in the past: %q", rows)
	}
	_, _, page = b.do("GET", "/queues/sms"+past, nil)
	if strings.Contains(page, "Edit limits…") || !strings.Contains(page, "at most 2 at once") {
		t.Errorf("in the past:\n%s", page)
	}
	commandstest.Verify(t, s.Store)
}
