package ledger_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// The tail is polled once an hour in this test, so only a notification can wake the watcher.
func TestPostgresNotificationWakes(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	s.SetServerPollInterval(time.Hour)
	other := ledgertest.OpenAt(t, s.DSN())
	woken, stop := s.Watch()
	defer stop()
	listening(t, woken)
	for range ledgertest.Size(2, 2, 5) {
		start := time.Now()
		announce(t, other)
		if !wakes(woken, 10*time.Second) {
			t.Fatal("not woken")
		}
		t.Log(time.Since(start))
		drain(woken)
	}
	write(t, other, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
	if wakes(woken, 200*time.Millisecond) {
		t.Error("a commit that was not announced woke")
	}
}

// listening waits for the wake-up that a watcher gets when LISTEN has begun.
func listening(t *testing.T, woken <-chan struct{}) {
	t.Helper()
	if !wakes(woken, 10*time.Second) {
		t.Fatal("nothing said that the listening has begun")
	}
	drain(woken)
}

// A listener and a notifier whose connections end reconnect, and the watcher is woken for what was committed
// meanwhile.
func TestPostgresWatchOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	s.SetServerPollInterval(time.Hour)
	other := ledgertest.OpenAt(t, s.DSN())
	by := connect(t, s.DSN())
	woken, stop := s.Watch()
	defer stop()
	announce(t, other)
	listening(t, woken)
	for range ledgertest.Size(1, 1, 2) {
		execute(t, by,
			`SELECT pg_terminate_backend(pid)
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		announce(t, other)
		if !wakes(woken, 20*time.Second) {
			t.Fatal("not woken by what came while no connection listened")
		}
		drain(woken)
		announce(t, other) // the notifier has lost its connection as well, so this may take a moment
		if !wakes(woken, 20*time.Second) {
			announce(t, other)
			if !wakes(woken, 20*time.Second) {
				t.Fatal("not woken any more")
			}
		}
		drain(woken)
	}
}

// heard counts the notifications on the ledger's channel until the test ends.
func heard(t *testing.T, dsn string) *atomic.Int64 {
	t.Helper()
	conn := connect(t, dsn)
	execute(t, conn, `LISTEN jobledger_jobledger`)
	var count atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return
			}
			count.Add(1)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return &count
}

// A pooler does not support LISTEN: the tail is polled instead, and no notification is sent.
func TestPostgresWatchWithoutNotifications(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	off := with(dsn, "listen=off")
	s, other := openAt(t, off), ledgertest.OpenAt(t, off)
	s.SetServerPollInterval(time.Hour)
	count := heard(t, dsn)
	woken, stop := s.Watch()
	defer stop()
	listening(t, woken)
	for range 3 {
		announce(t, other)
		if !wakes(woken, 10*time.Second) {
			t.Fatal("not woken")
		}
		drain(woken)
	}
	if n := count.Load(); n != 0 {
		t.Errorf("%d notifications, want none", n)
	}
	announce(t, ledgertest.OpenAt(t, dsn))
	eventually(t, "notified", func() bool { return count.Load() == 1 })
}

// A notification takes a lock of the whole server, so consecutive commits share one.
func TestPostgresCommitsShareNotification(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	count := heard(t, s.DSN())
	start := time.Now()
	for range 1000 {
		announce(t, s)
	}
	took := time.Since(start)
	var n int64
	eventually(t, "notified", func() bool { n = count.Load(); return n > 0 })
	time.Sleep(100 * time.Millisecond) // time for a last notification
	n = count.Load()
	if most := int64(took/ledger.NotifyInterval) + 2; n > most {
		t.Errorf("%d notifications of 1000 commits in %v, want up to %d", n, took, most)
	}
	t.Logf("%d notifications of 1000 commits in %v", n, took)
}
