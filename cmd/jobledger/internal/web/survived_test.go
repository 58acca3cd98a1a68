package web

import (
	"errors"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
)

// The page of workers names the process of a command that outlives its end: of a held job, and after a
// cancel.
func TestPageOfWorkersNamesWhatLives(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	header := s.create("a", []string{"*"}, access.Scopes...)
	w := event.Worker{Name: "w", Boot: "boot", Host: "h", PID: 7}
	jobs, err := s.service().Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
		Lease: time.Minute, Worker: w})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	beat := commands.Heartbeat{Token: jobs[0].Token, Lease: time.Minute,
		CannotEnd: "pid 7 (sudo) belongs to root"}
	if _, err := s.service().Apply(t.Context(), "worker:w", jobs[0].ID, beat); err != nil {
		t.Fatal(err)
	}
	want := string(jobs[0].ID) + " cannot be ended: pid 7 (sudo) belongs to root"
	if _, page := s.do("GET", "/workers", nil, "Authorization", header); !strings.Contains(page, want) {
		t.Errorf("a job that is held: %q is not in %s", want, page)
	}
	if _, err := s.service().Apply(t.Context(), "cli:ada", jobs[0].ID, commands.Cancel{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.service().Apply(t.Context(), "worker:w", jobs[0].ID, beat); !errors.Is(err,
		commands.ErrCancelled) {
		t.Fatal(err)
	}
	_, page := s.do("GET", "/workers", nil, "Authorization", header)
	for _, want := range []string{string(jobs[0].ID) + " cancelled ", ", may run until ",
		", cannot be ended: pid 7 (sudo) belongs to root"} {
		if !strings.Contains(page, want) {
			t.Errorf("a job that was cancelled: %q is not in %s", want, page)
		}
	}
	commandstest.Verify(t, s.Store)
}
