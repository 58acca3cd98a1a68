package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// runRelay runs a relay until the test ends, and fails the test if that ends otherwise.
func runRelay(t testing.TB, r *outbox.Relay) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("relay: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// waitFor polls until the ledger has so many jobs.
func waitFor(t testing.TB, s *commands.Service, n int) {
	t.Helper()
	changed, stop := s.Store.Watch()
	defer stop()
	for end := time.Now().Add(30 * time.Second); len(jobs(t, s)) < n; {
		if time.Now().After(end) {
			t.Fatalf("%d jobs, want %d", len(jobs(t, s)), n)
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Millisecond): // the poll of a ledger whose notification came before Watch
		}
	}
}

// took returns the median time from a commit to the handler of its job, with an idle worker. A job that began
// before its commit was known to have ended counts as 0.
func took(t testing.TB, db *sql.DB, s *commands.Service, times int) time.Duration {
	t.Helper()
	began := make(chan time.Time, 1)
	w := &worker.Worker{Service: s, Queues: []string{"ship"}, SweepEvery: -1,
		Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
			began <- time.Now()
			return nil, nil
		})}
	var working sync.WaitGroup
	working.Go(func() {
		if _, err := w.Run(context.Background()); err != nil {
			t.Error(err)
		}
	})
	defer working.Wait()
	defer w.Stop()
	var all []time.Duration
	for range times {
		transact(t, db, func(tx *sql.Tx) bool {
			_, err := outbox.Enqueue(context.Background(), tx, commands.Enqueue{Queue: "ship", Payload: []byte("x")})
			if err != nil {
				t.Error(err)
			}
			return true
		})
		committed := time.Now()
		select {
		case at := <-began:
			all = append(all, max(at.Sub(committed), 0))
		case <-time.After(20 * time.Second):
			t.Error("the job did not come")
			return time.Hour
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// openSource opens the outbox at dsn until the test ends.
func openSource(t *testing.T, dsn string) *outbox.Source {
	t.Helper()
	source, err := outbox.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

// A relay wakes for the rows of its own process, of another process that uses PostgreSQL, and within its poll
// for all others. A poll of an hour shows that it is not the poll that finds them.
func TestRelayIsWoken(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		source := openSource(t, dsn)
		// A commit that takes longer than the relay looks often is found by its poll. The median shows that the
		// others are not.
		runRelay(t, &outbox.Relay{Service: service, From: source, Poll: 10 * time.Second})
		median := took(t, db, service, 9)
		t.Logf("the median is %s", median)
		if median > time.Second {
			t.Errorf("the median is %s", median)
		}
		waitFor(t, service, 9)
	})
}

// insertQuietly enqueues as another process does: this process does not know of it.
func insertQuietly(t testing.TB, db *sql.DB, id string) {
	t.Helper()
	_, err := db.Exec(`INSERT INTO jobledger_outbox (id, job) VALUES ($1, '{"queue":"ship"}')`, id)
	if err != nil {
		t.Fatal(err)
	}
}

func TestRelayHearsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		source := openSource(t, dsn)
		relay := &outbox.Relay{Service: service, From: source}
		if ledger.IsServerAddress(dsn) {
			relay.Poll = time.Hour // it is notified
		}
		runRelay(t, relay)
		insertQuietly(t, db, "01J9Z3NDEKTSV4RRFFQ69G5FA1")
		waitFor(t, service, 1)
		insertQuietly(t, db, "01J9Z3NDEKTSV4RRFFQ69G5FA2")
		waitFor(t, service, 2)
	})
}

// Several relays of one outbox make no job twice and keep the order.
func TestRelaysShareAnOutbox(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		var mu sync.Mutex
		made := 0
		for range 3 {
			runRelay(t, &outbox.Relay{Service: service, From: openDB(t, dsn), Moved: func(m outbox.Moved) {
				mu.Lock()
				defer mu.Unlock()
				made += m.Jobs
			}})
		}
		n := ledgertest.Size(50, 80, 600)
		var want []string
		for range n {
			id, err := outbox.Enqueue(t.Context(), db, commands.Enqueue{Queue: "ship", Payload: []byte("x")})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, string(id))
		}
		waitFor(t, service, n)
		var got []string
		for _, j := range jobs(t, service) {
			got = append(got, string(j.ID))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d jobs in another order than %d rows", len(got), len(want))
		}
	})
}

// A wrong database is an error at once.
func TestRelayErrors(t *testing.T) {
	t.Parallel()
	service := verified(t)
	db, err := sql.Open("sqlite", "file:"+t.TempDir()+"/empty.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := (&outbox.Relay{Service: service, From: db}).Run(t.Context()); err == nil {
		t.Error("a database without the table is not an error")
	}
	if _, err := outbox.Open(t.Context(), t.TempDir()+"/none.db"); err == nil {
		t.Error("a file that does not exist is not an error")
	}
	if err := (&outbox.Relay{Service: service, From: 1}).Run(t.Context()); err == nil {
		t.Error("a number is not an error")
	}
}

// A relay whose connections are cut goes on, and is notified again.
func TestRelayReconnects(t *testing.T) {
	t.Parallel()
	dsn, service := ledgertest.Postgres(t), verified(t)
	db := openDB(t, dsn)
	source, err := outbox.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	runRelay(t, &outbox.Relay{Service: service, From: source})
	for i := range ledgertest.Size(1, 2, 20) {
		insertQuietly(t, db, fmt.Sprintf("01J9Z3NDEKTSV4RRFFQ69G5F%02d", i))
		waitFor(t, service, i+1)
		_, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		if err != nil {
			t.Fatal(err)
		}
	}
	insertQuietly(t, db, "01J9Z3NDEKTSV4RRFFQ69G5FZZ")
	waitFor(t, service, ledgertest.Size(1, 2, 20)+1)
}

// A ledger that is closed ends the relay.
func TestRelayEndsWithItsLedger(t *testing.T) {
	db := openDB(t, t.TempDir()+"/shop.db")
	store := ledgertest.Open(t)
	result := make(chan error, 1)
	relay := &outbox.Relay{Service: &commands.Service{Store: store}, From: db}
	go func() { result <- relay.Run(t.Context()) }()
	if _, err := outbox.Enqueue(t.Context(), db, commands.Enqueue{Queue: "a"}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, relay.Service, 1)
	commandstest.Verify(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Enqueue(t.Context(), db, commands.Enqueue{Queue: "a"}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-result:
		if !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on without a ledger")
	}
}

// TestRelayEndsWithItsContext: that is not an error, even if it ends before the first look.
func TestRelayEndsWithItsContext(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	relay := &outbox.Relay{Service: verified(t), From: openDB(t, filepath.Join(t.TempDir(), "shop.db"))}
	if err := relay.Run(ended); err != nil {
		t.Error(err)
	}
}
