package main

import (
	"html"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// Kinds of events can be left out, on the pages, in the API and by the SQL and the command of a page; the
// tail leaves out heartbeats unless kind is given. The form of kinds leads to an address that says the same.
func TestEventsLeaveOutKinds(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	j := s.claim("w1", "mail")
	s.do("worker:w1", j, commands.Heartbeat{Token: j.Token, Lease: time.Minute})
	s.do("worker:w1", j, commands.Succeed{Token: j.Token})
	_, fetch := serveOn(t, s.Store, noon)
	const all, but = "enqueued claimed heartbeat succeeded", "enqueued claimed succeeded"
	for path, want := range map[string]string{
		"/tail":                but,
		"/tail?kind=":          all,
		"/tail?queue=mail":     but,
		"/tail?kind=heartbeat": "heartbeat",
		"/tail?kinds=but":      all,
		"/tail?kinds=but&kind=claimed&kind=enqueued": "heartbeat succeeded",
		"/events":                                           all,
		"/events?kind=-heartbeat":                           but,
		"/events?kinds=only&kind=claimed":                   "claimed",
		"/events?kinds=only&job=" + string(j.ID):            all,
		"/events?kind=claimed&kind=heartbeat&kind=-claimed": "heartbeat",
	} {
		status, _, page := fetch(path)
		if status != 200 {
			t.Errorf("%s: %d\n%s", path, status, page)
			continue
		}
		var kinds []string
		for _, row := range tableOf(t, page, `aria-label="events"`)[1:] {
			kinds = append(kinds, row[2])
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s shows %s, want %s", path, got, want)
		}
		if sql := copiedSQL.FindStringSubmatch(page); sql != nil {
			lines := strings.TrimSpace(queried(t, s.Store.DSN(), html.UnescapeString(sql[1])))
			if got := strings.Count(lines, "\n") + 1; got != len(kinds) {
				t.Errorf("%s: the SQL %s finds %d events, want %d", path, sql[1], got, len(kinds))
			}
		} else if !strings.Contains(path, "queue=") { // one view does not say that
			t.Errorf("%s: there is no SQL", path)
		}
		command := copiedCommand.FindStringSubmatch(page)
		if command == nil {
			t.Errorf("%s: there is no command", path)
			continue
		}
		words := strings.Fields(html.UnescapeString(command[1]))[1:]
		if code, out, text := s.run(0, append(words, "--json")...); code != 0 ||
			strings.Count(out, "\n") != len(kinds) {
			t.Errorf("%s: the command %q prints %s%s, want %d lines", path, words, out, text, len(kinds))
		}
	}
	_, _, page := fetch("/tail")
	for _, part := range []string{"Kinds: all but heartbeat", `value="but" checked`,
		`value="heartbeat" checked`, `data-stream="/tail/stream?kind=-heartbeat"`, `href="/events/4"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the tail has no %q", part)
		}
	}
	for path, want := range map[string]int{"/events?kind=-nothing": 400, "/events?kinds=all": 400,
		"/tail?kinds=only&kinds=but": 400, "/tail?kinds=but&kind=x": 400, "/api/v1/events?kinds=but": 400,
		"/api/v1/events/stream?kind=claimed&kind=-claimed": 400} {
		if status, _, text := fetch(path); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if _, _, text := fetch("/api/v1/events?kind=-heartbeat"); strings.Contains(text, `"heartbeat"`) ||
		strings.Count(text, `"pos":`) != 3 {
		t.Errorf("the API has\n%s", text)
	}
	commandstest.Verify(t, s.Store)
}
