package main

import (
	"strings"
	"testing"

	"jobledger/commands"
)

// Pages about now say where a script hears that the ledger has moved on, from their own position; those about
// the past or about a window that has ended do not.
func TestPagesFollowNowOnly(t *testing.T) {
	s := newScenario(t)
	job := s.enqueue(commands.Enqueue{Queue: "mail"})
	s.enqueue(commands.Enqueue{Queue: "mail"})
	_, fetch := serveOn(t, s.Store, noon)
	const follows = `data-stream="/tail/stream?after=2`
	for path, want := range map[string]bool{"/": true, "/queues/mail": true, "/queues/mail?from=-1h": true,
		"/workers": true, "/failures": true, "/failures?from=-1h&to=now": false, "/workers?at=pos:2": false,
		"/jobs/" + string(job.ID): true, "/jobs/" + string(job.ID) + "?at=pos:2": false, "/?at=pos:1": false,
		"/?at=pos:2": false, "/queues/mail?at=pos:2": false,
		"/queues/mail?from=-1h&to=now": false, "/jobs": false} {
		status, _, page := fetch(path)
		if status != 200 || strings.Contains(page, follows) != want ||
			!want && strings.Contains(page, "data-stream") {
			t.Errorf("%s: %d, follows: want %v\n%.1500s", path, status, want, page)
		}
	}
}
