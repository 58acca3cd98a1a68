package view

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// A copy is made once for all who ask, and again where something happened and it is old. It is removed when
// it is not read any more.
func TestWholeIsMadeOnceForAll(t *testing.T) {
	s := commandstest.New(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	enqueue := func() {
		t.Helper()
		if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
			t.Fatal(err)
		}
	}
	enqueue()
	w := NewWhole(s.Store, filepath.Join(temp, "archive"))
	var mu sync.Mutex
	used := make(map[*ledger.Store]int)
	ask := func() (tail int64) {
		t.Helper()
		err := w.Use(t.Context(), func(store *ledger.Store) error {
			mu.Lock()
			used[store]++
			mu.Unlock()
			return store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
				tail, err = tx.Tail(t.Context())
				return err
			})
		})
		if err != nil {
			t.Error(err)
		}
		return tail
	}
	folders := func(want int) {
		t.Helper()
		if found, err := filepath.Glob(filepath.Join(temp, "jobledger-whole-*")); err != nil || len(found) != want {
			t.Errorf("%d folders are wanted: %q, %v", want, found, err)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if tail := ask(); tail != 1 {
				t.Errorf("the copy has %d events", tail)
			}
		})
	}
	all.Wait()
	if len(used) != 1 {
		t.Errorf("%d copies for those who asked at the same time", len(used))
	}
	enqueue()
	w.now.until = time.Now().Add(time.Hour)
	if tail := ask(); tail != 1 {
		t.Errorf("a copy that is not old was made again: %d events", tail)
	}
	w.now.until = time.Now()
	held := make(chan bool)
	old := w.now
	all.Go(func() { // it goes on reading the old one
		_ = w.Use(t.Context(), func(*ledger.Store) error { <-held; return nil })
	})
	for before := true; before; time.Sleep(time.Millisecond) { // pause of a poll
		w.mu.Lock()
		before = w.making == nil && w.now == old
		w.mu.Unlock()
	}
	if tail := ask(); tail != 2 || len(used) != 2 {
		t.Errorf("an old copy: %d events, %d copies", tail, len(used))
	}
	folders(1)
	close(held)
	all.Wait()

	// Who gives up has no copy, and those who ask later have it.
	enqueue()
	w.now.until = time.Now()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Use(gone, func(*ledger.Store) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
	if tail := ask(); tail != 3 {
		t.Errorf("after one gave up: %d events", tail)
	}
	w.drop()
	folders(0)
	ask()
	folders(1)
	w.Close()
	folders(0)
	if err := w.Use(t.Context(), nil); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	commandstest.Verify(t, s.Store)
}
