//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// A command that reads the ledger and whose output is not read holds no snapshot while it waits: otherwise
// the -wal file would keep growing.
func TestUnreadOutputHoldsNoSnapshot(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	job := ""
	s.withService(0, func(ctx context.Context, service *commands.Service) {
		for range 20 {
			jobs := make([]commands.Enqueue, 200)
			for i := range jobs {
				jobs[i] = commands.Enqueue{Queue: "mail", Payload: []byte("p"),
					Tags: map[string]string{"customer": "a name of some length"}}
			}
			answers, err := service.Enqueue(ctx, "cli:test", jobs...)
			s.ok(err)
			job = string(answers[0].ID)
		}
		w := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "b"},
			Lease: time.Hour, Limit: 1000}
		held, err := service.Claim(ctx, w)
		s.ok(err)
		job = string(held[0].ID)
		for i := range 800 {
			_, err := service.Apply(ctx, "worker:w", held[0].ID,
				commands.Heartbeat{Token: held[0].Token, Lease: time.Hour,
					Note: fmt.Sprintf("page %d of the long document", i)})
			s.ok(err)
		}
	})
	store, err := ledger.Open(t.Context(), s.path(db))
	s.ok(err)
	defer store.Close()
	service := &commands.Service{Store: store}
	held := store.Read(t.Context(), func(tx *ledger.Tx) error { // proves that this test can see a snapshot
		if _, err := tx.Tail(t.Context()); err != nil {
			return err
		}
		other, err := ledger.Open(t.Context(), s.path(db))
		s.ok(err)
		defer other.Close()
		_, err = (&commands.Service{Store: other}).Enqueue(t.Context(), "cli:test",
			commands.Enqueue{Queue: "other"})
		s.ok(err)
		if whole, err := other.Checkpoint(t.Context()); whole || err != nil {
			t.Errorf("a checkpoint during a snapshot is whole: %t, %v", whole, err)
		}
		return nil
	})
	s.ok(held)
	for _, words := range [][]string{
		{"events"}, {"events", "--follow"}, {"events", "--json"}, {"list", "--limit", "4000"},
		{"list", "--limit", "4000", "--as-of", "pos:4500"}, {"history", job, "--json"}, {"attempts", "--json"},
		{"export"}, {"export", "--format", "csv"}, {"export", "--format", "trace"},
		{"export", "--format", "otlp"},
	} {
		r, w, err := os.Pipe()
		s.ok(err)
		cmd := s.command(words...)
		cmd.Stdout = w
		s.ok(cmd.Start())
		_ = w.Close()
		if line, err := bufio.NewReaderSize(r, 16).ReadSlice('\n'); len(line) == 0 {
			t.Errorf("%q: %v", words, err)
		}
		_, err = service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "other"})
		s.ok(err)
		whole := false
		for deadline := time.Now().Add(30 * time.Second); !whole && time.Now().Before(deadline); {
			whole, err = store.Checkpoint(t.Context())
			s.ok(err)
		}
		info, err := os.Stat(s.path(db) + "-wal")
		s.ok(err)
		if !whole || info.Size() > 0 {
			t.Errorf("%q holds a snapshot while its output is not read: the -wal file has %d bytes",
				words, info.Size())
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Errorf("%q ended, though its output had not been read", words)
		}
		_ = r.Close()
	}
	s.run("verify")
}
