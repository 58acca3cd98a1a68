package outbox_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/outbox"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// TestMain lets this program be the shop that TestKilledShop kills.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "shop" {
		shop(os.Args[2], os.Args[3])
		return
	}
	ledgertest.DefaultSignals()
	os.Exit(m.Run())
}

// eachEngine runs test with the address of an empty database of the program, on each engine. The ledger is in
// the engine of the run.
func eachEngine(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "shop.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, ledgertest.Postgres(t))
	})
}

// openDB opens the program's own database as a program does, with the tables of the outbox.
func openDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func connect(dsn string) (*sql.DB, error) {
	driver, address := "pgx", dsn
	if !ledger.IsServerAddress(dsn) {
		driver = "sqlite"
		address = "file:" + dsn + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	return db, outbox.Migrate(context.Background(), db)
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

// verified returns a Service on a new ledger, which is verified when the test ends.
func verified(t testing.TB) *commands.Service {
	t.Helper()
	store := ledgertest.Open(t)
	t.Cleanup(func() { commandstest.Verify(t, store) })
	return &commands.Service{Store: store}
}

// left returns how many rows the outbox has.
func left(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(`SELECT count(*) FROM jobledger_outbox`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
