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
	ledgertest.Slow(t)
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
	jobs := make([]commands.Enqueue, 100)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	// A read that had to wait for 20 ms has got a connection of its own, which is kept for some seconds. So the
	// number is not more than four all the time, but comes to it while the worker is busy.
	wanted := ledgertest.Size(50, 100, 200)
	few := 0 // looks in a row, each while jobs were done
	for end := time.Now().Add(5 * time.Minute); few < wanted; few++ {
		before := done.Load()
		if _, err := service.Enqueue(t.Context(), "cli:ada@build7", jobs[:1+few%len(jobs)]...); err != nil {
			t.Fatal(err)
		}
		most := connections()
		for done.Load() == before {
			most = max(most, connections())
		}
		if most > 4 {
			few = -1
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections while busy, want 4 at most", most)
		}
	}
	const pause = 100 * time.Millisecond
	for end := time.Now().Add(time.Minute); connections() > 2; time.Sleep(pause) { // of a poll
		if time.Now().After(end) {
			t.Fatalf("%d connections while idle, want 2", connections())
		}
	}
}
