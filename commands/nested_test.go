package commands_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A Service that is called within Store.Write of the same ledger returns an error at once. What the function
// wrote goes with it, and the ledger works on. The Service of another ledger may be called.
func TestServiceWithinWriteIsAnError(t *testing.T) {
	s, other := newQueue(t), newQueue(t)
	asked := commands.Enqueue{Queue: "mail"}
	began := time.Now()
	err := s.Store.Write(t.Context(), func(*ledger.Tx) error {
		if _, err := other.Enqueue(context.Background(), "cli:test", asked); err != nil {
			t.Errorf("of another ledger: %v", err)
		}
		_, err := s.Enqueue(context.Background(), "cli:test", asked)
		return err
	})
	if took := time.Since(began); !errors.Is(err, ledger.ErrNested) || took > 10*time.Second {
		t.Errorf("got %v after %s", err, took)
	}
	if jobs, err := s.Enqueue(t.Context(), "cli:test", asked); err != nil || jobs[0].N != 1 {
		t.Errorf("after that: job %v, %v", jobs, err)
	}
}

// A write that waits for a slow function of another goroutine is not taken for a nested one, even if so
// many wait that the queue of the commit loop is full.
func TestWriteWaitsForSlowFunction(t *testing.T) {
	s := newQueue(t)
	running := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		err := s.Store.Write(context.Background(), func(*ledger.Tx) error {
			select {
			case <-running: // it runs again
			default:
				close(running)
			}
			time.Sleep(20 * time.Millisecond) // much longer than a write waits before it suspects
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-running
	n := ledgertest.Size(100, 1500, 3000)
	for range n {
		writers.Go(func() {
			if err := s.Store.Write(context.Background(), func(*ledger.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
}
