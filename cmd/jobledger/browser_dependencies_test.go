package main

import (
	"testing"

	"jobledger/commands"
	"jobledger/ledger/ledgertest"
)

// TestDependenciesInBrowser opens pages of jobs with dependencies in Chromium, as TestPagesInBrowser does
// others.
func TestDependenciesInBrowser(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := newScenario(t)
	jobs := s.diamond()
	binary := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("\x00\x01\xff")})
	n := serveStore(t, s.Store, noon)
	page := "/jobs/" + string(jobs["close"].ID)
	browse(t, browserTask{Link: <-n.links, Pages: []string{page, page + "?at=pos:20",
		"/jobs/" + string(jobs["extract"].ID), "/jobs/" + string(binary.ID)}})
}
