package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestFormsInBrowser uses the forms of the page of jobs in Chromium, on a ledger that goes on.
func TestFormsInBrowser(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := newScenario(t)
	for i := range 6 {
		s.enqueue(commands.Enqueue{Queue: "mail", Key: fmt.Sprintf("invoice-%d", i)})
		s.wait(20 * time.Second)
	}
	s.wait(15 * time.Minute) // time in which nothing happens
	s.enqueue(commands.Enqueue{Queue: "render"})
	claims, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"render"}, Limit: 1,
		Worker: event.Worker{Name: "alpha", Boot: "b1", Host: "h", PID: 1}})
	check(t, err)
	ran := claims[0].ID
	_, err = s.Apply(t.Context(), "worker:alpha", ran, commands.Heartbeat{Token: claims[0].Token,
		Lease: time.Minute})
	check(t, err)
	writeLog(t, s, ran, 1, true, strings.Repeat("451 try again later, "+strings.Repeat("x", 90)+"\n", 60))
	n := serveStore(t, s.Store, noon)
	browse(t, browserTask{Link: <-n.links, Forms: true,
		Pages: []string{"/jobs", "/jobs?find=queue:mail", "/", "/queues/mail",
			"/jobs/" + string(ran), "/tail"}})
	commandstest.Verify(t, s.Store)
}
