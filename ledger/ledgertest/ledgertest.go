// Package ledgertest opens ledgers for tests, on each engine.
//
// For tests only. Held by TestPostgresServerKeepsWhatIsCommitted, TestPostgresServerDiesWithItsProcess and
// TestSoakFlagKnownToEveryPackage. This package is not part of the Go API, and may change in any release.
package ledgertest

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/internal/sqlite"
)

// engine is defined here because every package with tests imports this one, so that all of them accept it.
var engine = flag.String("engine", "sqlite",
	"the database in which tests of both engines have their ledgers: sqlite or postgres")

func init() { ledger.CheckBursts = true }

// OnPostgres reports whether the ledgers of this run are in PostgreSQL.
func OnPostgres(t testing.TB) bool {
	t.Helper()
	switch *engine {
	case "sqlite":
		return false
	case "postgres":
		return true
	}
	t.Fatalf("-engine %s: it is sqlite or postgres", *engine)
	return false
}

// OfSQLite skips a test if the ledgers of this run are in PostgreSQL: the test concerns SQLite's files or
// statements, makes damage that PostgreSQL's types prevent, or needs a synctest bubble, whose clock a server
// does not share.
func OfSQLite(t testing.TB) {
	t.Helper()
	if OnPostgres(t) {
		t.Skip("about SQLite")
	}
}

// New returns the address of a ledger that does not exist yet, and is removed when the test ends.
func New(t testing.TB) (dsn string) {
	t.Helper()
	if OnPostgres(t) {
		return Postgres(t)
	}
	return filepath.Join(t.TempDir(), "jobs.db")
}

// Relaxed returns dsn for a ledger whose commits need not survive a power cut, which makes them faster.
func Relaxed(dsn string) string {
	switch {
	case strings.Contains(dsn, "?"):
		return dsn + "&sync=normal"
	case ledger.IsServerAddress(dsn):
		return dsn + "?sync=normal"
	}
	return "sqlite:" + dsn + "?sync=normal"
}

// Open returns a new, empty ledger. It is closed when the test ends.
func Open(t testing.TB) *ledger.Store {
	t.Helper()
	return OpenAt(t, Empty(t))
}

// Empty returns the address of a new, empty ledger, which is removed when the test ends.
func Empty(t testing.TB) (dsn string) {
	t.Helper()
	dsn = New(t)
	if OnPostgres(t) {
		return dsn // opening it creates it
	}
	if err := os.WriteFile(dsn, EmptyFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// EmptyFile returns the bytes of an empty SQLite ledger. Copying them costs a tenth of what creating a ledger
// does.
func EmptyFile(t testing.TB) []byte {
	t.Helper()
	file, err := emptyFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

var emptyFile = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "ledgertest")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "empty.db")
	store, err := ledger.Open(context.Background(), path)
	if err == nil {
		err = store.Close()
	}
	var file []byte
	if err == nil {
		file, err = os.ReadFile(path)
	}
	return file, errors.Join(err, os.RemoveAll(folder))
})

// OpenAt opens the ledger at dsn, as a further process would. It is closed when the test ends.
func OpenAt(t testing.TB, dsn string) *ledger.Store {
	t.Helper()
	s, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatalf("open %s: %v", dsn, err)
	}
	// In a synctest bubble it is the year 2000, and a goroutine that waits for the system would stop the clock.
	s.Exclusive = time.Now().Year() < 2020
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", dsn, err)
		}
	})
	return s
}

// Epoch is the time at which a Clock starts: 2026-01-02 03:04:05 UTC.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// SQLiteStatements returns the text of a bulk statement on SQLite, for one row and for the largest number of
// rows.
func SQLiteStatements(b *ledger.BulkStmt) (one, many string) {
	return sqlite.BulkText(b, 1), sqlite.BulkText(b, sqlite.MaxBulkRows)
}
