package ledger_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// announce commits an event that may make a job claimable.
func announce(t testing.TB, s *ledger.Store) {
	t.Helper()
	write(t, s, func(tx *ledger.Tx) error {
		tx.Announce()
		return note(t.Context(), tx, "cli:test")
	})
}

// wakes reports whether woken receives within d.
func wakes(woken <-chan struct{}, d time.Duration) bool {
	select {
	case <-woken:
		return true
	case <-time.After(d):
		return false
	}
}

// wakesNow reports whether woken has a value ready.
func wakesNow(woken <-chan struct{}) bool {
	select {
	case <-woken:
		return true
	default:
		return false
	}
}

// drain waits until no wake-up has come for a while: a watcher gets spurious ones when it begins to listen.
func drain(woken <-chan struct{}) {
	for wakes(woken, 400*time.Millisecond) {
	}
}

func TestWatchWakesOnAnnouncement(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := ledgertest.Open(t)
		first, stopFirst := s.Watch()
		second, stopSecond := s.Watch()
		defer stopSecond()
		announce(t, s)
		announce(t, s)
		for _, woken := range []<-chan struct{}{first, second} {
			if !wakesNow(woken) {
				t.Error("an announced commit did not wake")
			}
			if wakes(woken, time.Hour) {
				t.Error("woken twice: there is room for one")
			}
		}
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
		_ = s.Write(t.Context(), func(tx *ledger.Tx) error { return os.ErrInvalid })
		if wakes(first, time.Hour) {
			t.Error("a commit that was not announced woke")
		}
		stopFirst()
		announce(t, s)
		if wakes(first, time.Hour) || !wakesNow(second) {
			t.Error("after stop: the wrong one was woken")
		}
	})
}

// The data version is polled once an hour in this test, so only the doorbell of another process can wake the
// watcher.
func TestWatchWakesOnOtherProcess(t *testing.T) {
	ledger.SetPollIntervals(time.Hour, t.Cleanup)
	path := filepath.Join(t.TempDir(), "jobs.db")
	listener, other := openAt(t, path), ledgertest.OpenAt(t, path)
	woken, stop := listener.Watch()
	defer stop()
	if !wakes(woken, time.Minute) {
		t.Fatal("not listening")
	}
	drain(woken)
	for range ledgertest.Size(3, 3, 9) {
		announce(t, other)
		if !wakes(woken, 10*time.Second) {
			t.Fatal("not woken")
		}
		drain(woken) // one ring may wake more than once
	}
	for _, name := range []string{".bell", ".bell/bell"} {
		info, err := os.Stat(path + name)
		if err != nil || info.Mode().Perm()&0o077 != 0 { // the same mode as the ledger
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// Without a doorbell, the data version is polled.
func TestWatchWithoutDoorbell(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path+".bell", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, other := openAt(t, path), ledgertest.OpenAt(t, path)
	woken, stop := listener.Watch()
	defer stop()
	drain(woken)
	for range 3 {
		announce(t, other)
		if !wakes(woken, 10*time.Second) {
			t.Error("not woken by another process")
		}
		announce(t, listener)
		if !wakes(woken, 10*time.Second) {
			t.Error("not woken by its own commit")
		}
		drain(woken)
	}
	if text, err := os.ReadFile(path + ".bell"); err != nil || string(text) != "mine" {
		t.Errorf("the foreign file: %q, %v", text, err)
	}
}

// If the doorbell and its folder are removed, a watcher falls back to polling until it has a new one.
func TestWatchSurvivesRemovedDoorbell(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	listener, other := openAt(t, path), ledgertest.OpenAt(t, path)
	woken, stop := listener.Watch()
	defer stop()
	announce(t, other)
	drain(woken)
	if err := os.RemoveAll(path + ".bell"); err != nil {
		t.Fatal(err)
	}
	drain(woken)
	announce(t, other)
	if !wakes(woken, 10*time.Second) {
		t.Error("not woken")
	}
}

func TestCloseWakesWatchersAndLeavesNothingOpen(t *testing.T) {
	openFiles := func() (names []string) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no list of open files here")
		}
		for _, e := range entries {
			if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil &&
				(strings.Contains(name, "jobs.db") || strings.Contains(name, "inotify")) {
				names = append(names, name)
			}
		}
		return names
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	announce(t, s)
	before, goroutines := len(openFiles()), runtime.NumGoroutine()
	for range 3 { // the last watcher that stops ends the listening, and the next one starts it again
		woken, stopOne := s.Watch() // the second one may come after the listening has begun
		_, stopTwo := s.Watch()
		if !wakes(woken, 10*time.Second) {
			t.Error("nothing said that the listening has begun")
		}
		stopOne()
		stopTwo()
		stopTwo()
	}
	quiet := func() bool { // one connection stays open, and its driver has a goroutine
		return len(openFiles()) <= before+2 && runtime.NumGoroutine() <= goroutines+1
	}
	for end := time.Now().Add(10 * time.Second); !quiet() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // pause of a poll
	}
	if !quiet() {
		t.Errorf("without a watcher, %d files are open, %d before: %q; %d goroutines, %d before",
			len(openFiles()), before, openFiles(), runtime.NumGoroutine(), goroutines)
	}
	woken, stop := s.Watch()
	defer stop()
	drain(woken)
	announce(t, s)
	drain(woken)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !wakesNow(woken) {
		t.Error("Close did not wake")
	}
	if left := openFiles(); len(left) > 0 {
		t.Errorf("open after Close: %q", left)
	}
	late, stopLate := s.Watch()
	defer stopLate()
	if wakes(late, 300*time.Millisecond) {
		t.Error("a closed store woke")
	}
}

func TestWatchStartsAndStopsUnderLoad(t *testing.T) {
	path := ledgertest.New(t)
	s, other := openAt(t, path), ledgertest.OpenAt(t, path)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				woken, stop := s.Watch()
				if i%2 == 0 {
					announce(t, s)
					if !wakes(woken, time.Minute) {
						t.Error("a watcher was not woken by its own store")
					}
				} else {
					announce(t, other)
				}
				stop()
			}
		})
	}
	all.Wait()
	woken, stop := s.Watch()
	defer stop()
	for wakes(woken, 400*time.Millisecond) { // the wake-ups that a new watcher always gets
	}
	announce(t, other)
	if !wakes(woken, 10*time.Second) {
		t.Error("after all that, a watcher was not woken by another store")
	}
	stop()
	announce(t, s)
	if wakesNow(woken) {
		t.Error("woken after stop")
	}
}
