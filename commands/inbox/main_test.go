package inbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/inbox"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// TestMain lets this program be the shop that TestKilledInbox kills.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "shop" {
		shop(os.Args[2], os.Args[3])
		return
	}
	ledgertest.DefaultSignals()
	os.Exit(m.Run())
}

// eachEngine runs test on a new ledger in each engine. It is verified when the test ends.
func eachEngine(t *testing.T, test func(t *testing.T, service *commands.Service, db *sql.DB)) {
	run := func(dsn func(testing.TB) string) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			store := ledgertest.OpenAt(t, dsn(t))
			t.Cleanup(func() { commandstest.Verify(t, store) })
			test(t, &commands.Service{Store: store}, openDB(t, store))
		}
	}
	t.Run("sqlite", run(func(t testing.TB) string { return t.TempDir() + "/jobs.db" }))
	t.Run("postgres", run(func(t testing.TB) string { return ledgertest.Postgres(t) }))
}

// openDB opens a pool of the program's own in the database of the ledger.
func openDB(t testing.TB, store *ledger.Store) *sql.DB {
	t.Helper()
	db, err := connect(store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func connect(store *ledger.Store) (*sql.DB, error) {
	if ledger.IsServerAddress(store.DSN()) {
		return sql.Open("pgx", store.DSN())
	}
	return inbox.Open(context.Background(), store)
}

// transact runs fn in a transaction, which it commits if fn wants it to.
func transact(t testing.TB, db *sql.DB, fn func(tx *sql.Tx) (commit bool)) {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if fn(tx) {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// enqueue enqueues e in a transaction of its own.
func enqueue(t testing.TB, db *sql.DB, e commands.Enqueue) (id event.JobID) {
	t.Helper()
	transact(t, db, func(tx *sql.Tx) bool {
		var err error
		if id, err = inbox.Enqueue(t.Context(), tx, e); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return id
}

// jobs returns all jobs, the oldest first, with their payloads.
func jobs(t testing.TB, s *commands.Service) (list []projection.Job) {
	t.Helper()
	ctx := context.Background()
	err := s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if list, err = projection.List(ctx, tx, projection.Filter{}); err != nil {
			return err
		}
		slices.Reverse(list)
		for i := range list {
			if err := projection.LoadBodies(ctx, tx, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// sweep moves what is in the inbox.
func sweep(t testing.TB, s *commands.Service) {
	t.Helper()
	none := time.Duration(0)
	w := &commands.Sweeper{Service: s, Actor: "sweeper:test", Grace: &none}
	if _, err := w.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// left returns how many rows the inbox has, and how many were refused.
func left(t testing.TB, s *commands.Service) (rows, refused int) {
	t.Helper()
	err := s.Store.Read(context.Background(), func(tx *ledger.Tx) error {
		return tx.Each(context.Background(), func(row []driver.Value) bool {
			rows, refused = int(row[0].(int64)), int(row[1].(int64))
			return false
		}, `SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM inbox_refused)`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, refused
}
