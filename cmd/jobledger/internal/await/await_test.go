package await

import (
	"context"
	"errors"
	"os"
	"testing"

	"jobledger/commands"
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
	open, err := Ends(ctx, service.Store, []event.JobID{first, second}, func(jobs []projection.Job) error {
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
	if tail, err := Longer(t.Context(), service.Store, 0, there); tail != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", tail, err)
	}
	gone := func() bool { return true }
	if tail, err := Longer(t.Context(), service.Store, 1, gone); tail != 1 || err != nil {
		t.Errorf("without a reader: got %d, %v, want 1", tail, err)
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
