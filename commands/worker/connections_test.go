package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// A worker needs few connections to a server: up to four while it is busy, and two while it is idle.
func TestPostgresConnectionsOfAWorker(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	service := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	by, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close(context.Background())
	connections := func() (n int) {
		const others = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
		if err := by.QueryRow(t.Context(), others).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	jobs := ledgertest.Size(500, 1000, 20_000)
	var done atomic.Int64
	w := &Worker{Service: service, Queues: []string{"mail"}, Slots: 16,
		Process: event.Worker{Name: "w", Boot: "b"},
		Handler: HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
			done.Add(1)
			return nil, nil
		})}
	var running sync.WaitGroup
	running.Go(func() {
		if _, err := w.Run(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer w.Stop()
	all := make([]commands.Enqueue, jobs)
	for i := range all {
		all[i] = commands.Enqueue{Queue: "mail"}
	}
	if _, err := service.Enqueue(t.Context(), "cli:ada@build7", all...); err != nil {
		t.Fatal(err)
	}
	seen, more := 0, 0
	for done.Load() < int64(jobs) {
		if seen++; connections() > 4 {
			more++ // a read had to wait for 20 ms
		}
	}
	if 4*more > seen {
		t.Errorf("more than 4 connections while busy, %d of %d times", more, seen)
	}
	const pause = 100 * time.Millisecond
	for end := time.Now().Add(time.Minute); connections() > 2; time.Sleep(pause) { // of a poll
		if time.Now().After(end) {
			t.Fatalf("%d connections while idle, want 2", connections())
		}
	}
}
