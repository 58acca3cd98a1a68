package await

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestEndsReturnsOpenJobs(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	answers, err := service.Enqueue(t.Context(), "cli:ada@build7", commands.Enqueue{Queue: "mail"},
		commands.Enqueue{Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	first, second := answers[0].ID, answers[1].ID
	if _, err := service.Apply(t.Context(), "cli:ada@build7", first, commands.Cancel{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended []event.JobID
	none := &Outage{}
	open, err := Ends(ctx, service.Store, []event.JobID{first, second}, none, func(jobs []projection.Job) error {
		for _, j := range jobs {
			ended = append(ended, j.ID)
		}
		cancel() // the other one does not end
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(open) != 1 || open[0] != second {
		t.Errorf("got open %v, %v; want %s", open, err, second)
	}
	if len(ended) != 1 || ended[0] != first {
		t.Errorf("got ended %v, want %s", ended, first)
	}
}

func TestLongerReturnsTail(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := service.Enqueue(t.Context(), "cli:ada@build7", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	there := func() bool { return false }
	tail, err := Longer(t.Context(), service.Store, 0, &SeenEnd{}, &Outage{}, there)
	if tail != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", tail, err)
	}
	gone := func() bool { return true }
	tail, err = Longer(t.Context(), service.Store, 1, &SeenEnd{Pos: 1}, &Outage{}, gone)
	if tail != 1 || err != nil {
		t.Errorf("without a reader: got %d, %v, want 1", tail, err)
	}
}

// A ledger lacks what was seen where it is shorter, and where another event has that place, as on a standby
// that took over without the last events and has gone on.
func TestLongerFindsALedgerThatLacksEvents(t *testing.T) {
	one, other := &commands.Service{Store: ledgertest.Open(t)}, &commands.Service{Store: ledgertest.Open(t)}
	enqueue := func(service *commands.Service, jobs ...commands.Enqueue) {
		t.Helper()
		if _, err := service.Enqueue(t.Context(), "cli:ada@build7", jobs...); err != nil {
			t.Fatal(err)
		}
	}
	there := func() bool { return false }
	longer := func(service *commands.Service, after int64, end *SeenEnd) error {
		_, err := Longer(t.Context(), service.Store, after, end, &Outage{}, there)
		return err
	}
	mail := commands.Enqueue{Queue: "mail"}
	enqueue(one, mail, mail)
	enqueue(other, mail)
	end := SeenEnd{}
	if err := longer(one, 0, &end); err != nil || end.Pos != 2 {
		t.Fatalf("seen up to %d: %v", end.Pos, err)
	}
	shorter := end
	if err := longer(other, 2, &shorter); !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("a shorter one: got %v, want ErrReplaced", err)
	}
	enqueue(other, mail, mail)
	another := end
	if err := longer(other, 2, &another); !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("one with another event: got %v, want ErrReplaced", err)
	}
	enqueue(one, mail)
	if err := longer(one, 2, &end); err != nil || end.Pos != 3 {
		t.Errorf("the same: seen up to %d: %v", end.Pos, err)
	}
}

// What waits for a server outlasts its restarts and crashes, and says so once for each.
func TestOutageIsOutlasted(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	service := &commands.Service{Store: ledgertest.OpenAt(t, server.URL())}
	answers, err := service.Enqueue(t.Context(), "cli:ada@build7", commands.Enqueue{Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 100)
	outage := func() *Outage {
		return &Outage{Say: func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }}
	}
	ended, longer := make(chan error), make(chan error)
	go func() {
		_, err := Ends(t.Context(), service.Store, []event.JobID{answers[0].ID}, outage(),
			func([]projection.Job) error { return nil })
		ended <- err
	}()
	go func() {
		there := func() bool { return false }
		tail, err := Longer(t.Context(), service.Store, 1, &SeenEnd{Pos: 1}, outage(), there)
		if err == nil && tail != 2 {
			err = fmt.Errorf("the tail is %d, want 2", tail)
		}
		longer <- err
	}()
	for _, stop := range []func(){server.Stop, server.Kill} {
		stop()
		for range 2 {
			if text := <-said; !strings.HasSuffix(text, "; waiting for it") {
				t.Errorf("it said %q", text)
			}
		}
		server.Start()
		for range 2 {
			if text := <-said; !strings.HasPrefix(text, "the ledger answers again, after ") {
				t.Errorf("it said %q", text)
			}
		}
	}
	if _, err := service.Apply(t.Context(), "cli:ada@build7", answers[0].ID, commands.Cancel{}); err != nil {
		t.Fatal(err)
	}
	for what, done := range map[string]chan error{"Ends": ended, "Longer": longer} {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestProcessEndStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ProcessEnd(ctx, os.Getpid()) // which goes on
	if !processExists(os.Getpid()) {
		t.Error("this process does not exist")
	}
}
