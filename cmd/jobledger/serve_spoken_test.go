package main

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// Fields and addresses of pages take times as people say them, in the zone of the page; the API does not. A
// refusal is a page with the field, filled, and three examples.
func TestPagesTakeSpokenTimes(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(t, err)
	s := newScenario(t)
	job := s.enqueue(commands.Enqueue{Queue: "mail"})
	served := serveStore(t, s.Store, func() time.Time { return time.Date(2026, 10, 27, 14, 30, 0, 0, berlin) })
	b := reader{t, served.base, &http.Client{Jar: loggedIn(t, served), CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	for text, want := range map[string]string{"sun 02:30": "2026-10-25T00:30:00Z",
		"yesterday": "2026-10-25T23:00:00Z", "2pm": "2026-10-27T13:00:00Z",
		"26 oct noon": "2026-10-26T11:00:00Z", "2026-10-26": "2026-10-25T23:00:00Z"} {
		status, to, page := b.do("GET", "/?"+url.Values{"at": {text}}.Encode(), nil)
		address, err := url.Parse(to)
		check(t, err)
		if got := address.Query().Get("at"); status != 303 || got != "pos:1@"+want {
			t.Errorf("%s: %d %s, want %s\n%.900s", text, status, got, want, page)
		}
		status, _, page = b.do("GET", "/jobs?"+url.Values{"from": {text}}.Encode(), nil)
		at, err := time.Parse(time.RFC3339, want)
		check(t, err)
		if local := at.In(berlin).Format(time.RFC3339); status != 200 ||
			!strings.Contains(html.UnescapeString(page), `name="from" value="`+local+`"`) {
			t.Errorf("from %s: %d, and not %s", text, status, local)
		}
		if status, _, _ := b.do("GET", "/api/v1/jobs?"+url.Values{"from": {text}}.Encode(), nil); status != 400 &&
			text != "2pm" {
			t.Errorf("the API takes %s: %d", text, status)
		}
	}
	if status, _, page := b.do("GET", "/jobs?find=since:yesterday", nil); status != 200 {
		t.Errorf("find=since:yesterday: %d %.900s", status, page)
	}
	// The hour that the clocks show twice, and the one that they skip.
	for at, want := range map[string]string{
		"2026-10-25T02:30:00+02:00": `there is <a href="/?at=2026-10-25T02%3A30%3A00%2B01%3A00">the second</a>`,
		"2026-10-25T02:30:00+01:00": `there is <a href="/?at=2026-10-25T02%3A30%3A00%2B02%3A00">the first</a>`,
		"2026-03-29T03:00:00+02:00": "from 01:59:59 CET to 03:00:00 CEST", "2026-10-25T03:30:00+01:00": ""} {
		_, to, _ := b.do("GET", "/?"+url.Values{"at": {at}}.Encode(), nil)
		_, _, page := b.do("GET", strings.TrimPrefix(to, served.base), nil)
		if found := strings.Contains(page, "The clocks "); found != (want != "") || !strings.Contains(page, want) {
			t.Errorf("%s: no %q in\n%.4000s", at, want, page)
		}
	}
	refused := func(status int, page, field, value string, keeps ...string) {
		t.Helper()
		if form := `name="` + field + `" value="` + value + `"`; status != 400 || !strings.Contains(page, form) {
			t.Errorf("%d, and no %s in\n%.3000s", status, form, page)
		}
		if n := strings.Count(page, "<code>"); n != 3 {
			t.Errorf("%s: %d examples", field, n)
		}
		for _, kept := range keeps {
			if !strings.Contains(page, kept) {
				t.Errorf("%s: no %s in\n%.3000s", field, kept, page)
			}
		}
		for _, one := range regexp.MustCompile(`<code>([^<]*)</code>`).FindAllStringSubmatch(page, -1) {
			if field == "run_at" {
				continue
			}
			query := url.Values{field: {html.UnescapeString(one[1])}}
			if status, _, page := b.do("GET", "/jobs?"+query.Encode(), nil); status != 200 && status != 303 {
				t.Errorf("the example %s: %d %.900s", one[1], status, page)
			}
		}
	}
	status, _, page := b.do("GET", "/jobs?at=half+past+two&queue=mail", nil)
	refused(status, page, "at", "half past two", `<form method="get" action="/jobs"`,
		`name="queue" value="mail"`, `<a href="/lanes">`)
	status, _, page = b.do("GET", "/lanes?from=13pm&tz=UTC", nil)
	refused(status, page, "from", "13pm", `name="tz" value="UTC"`)
	// A form of an act keeps what was typed; its time is the next one.
	path := "/jobs/" + string(job.ID) + "/reschedule"
	act := url.Values{"seq": {"1"}, "reason": {"the cause is gone"}, "run_at": {"later"}}
	status, _, page = b.do("POST", path, act)
	refused(status, page, "run_at", "later", `<form method="post" action="`+path+`"`,
		`name="reason" value="the cause is gone"`, `name="seq" value="1"`)
	act.Set("run_at", "9:00")
	if status, _, page := b.do("POST", path, act); status != 303 {
		t.Errorf("%d\n%.3000s", status, page)
	}
	_, _, page = b.do("GET", "/jobs/"+string(job.ID), nil)
	if !strings.Contains(page, ">2026-10-28 09:00:00&#43;01:00<") {
		t.Errorf("9:00 is not the next one\n%.3000s", page)
	}
	commandstest.Verify(t, s.Store)
}

// In an import, a time of the day is the last one of what was recorded.
func TestTimesOfAnImportAreOfItsStretch(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	get := getter(t, serveStore(t, s.Store, func() time.Time { return morning.AddDate(0, 0, 3) }))
	status, _, page := get("/?at=01:30")
	if want := "2026-03-15 01:30:00&#43;00:00</time>"; status != 200 || !strings.Contains(page, want) {
		t.Errorf("%d, and no %s in\n%.4000s", status, want, page)
	}
}
