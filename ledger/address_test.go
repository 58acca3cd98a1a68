//go:build unix

package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/commands/outbox"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// An address of another program is not a file's name, and never in an error.
func TestOpenRefusesAddressesOfOthers(t *testing.T) {
	ledgertest.OfSQLite(t)
	dir := t.TempDir()
	t.Chdir(dir)
	ctx := t.Context()
	for _, dsn := range []string{
		"host=127.0.0.1 user=app password=secret dbname=x", "dbname=secret", "user=secret", " host = secret",
		"HOST=secret", "password='secret' host=x", "sslmode=disable host=secret", "application_name=secret host=x",
		"service=secret", "hostaddr=1.2.3.4 secret", "port=5432 secret", "passfile=/secret", "x password=secret",
		"host=/var/run/secret dbname=x", "sqlite:host=x password=secret",
		"postgres:secret", "postgres:/secret", "postgresql:secret@host/db", "Postgres://app:secret@host/db",
		"postgres+ssl://app:secret@host/db", "file:secret.db", "file:/tmp/secret.db", "file:secret.db?mode=rwc",
		"file::memory:?cache=shared&secret", "sqlite3:secret.db", "sqlite3:///secret.db", "SQLITE:secret.db",
		"mysql://app:secret@host/db", "mysql:secret", "redis://:secret@host", "http://host/secret", "jdbc:secret",
		"jobs-secret:12.db", "secret.db?sync=normal", "secret.db?", "dir/secret.db?mode=ro",
		filepath.Join(dir, "secret.db?sync=normal"), filepath.Join(dir, "x password=secret"),
		"sqlite://secret.db", "sqlite:///secret.db", "sqlite:////secret.db", "sqlite:file:secret.db",
		"sqlite:jobs.db?password=secret", "sqlite:jobs.db?sync=normal&key=secret", "sqlite:jobs.db?%zsecret",
	} {
		_, openErr := ledger.Open(ctx, dsn)
		_, existingErr := ledger.OpenExisting(ctx, dsn)
		calls := map[string]error{"Open": openErr, "OpenExisting": existingErr, "Migrate": ledger.Migrate(ctx, dsn)}
		if !strings.HasPrefix(dsn, "sqlite:jobs.db?") { // whose options are Open's own
			calls["CheckAddress"] = ledger.CheckAddress(dsn)
			_, calls["outbox.Open"] = outbox.Open(ctx, dsn)
		}
		for call, err := range calls {
			if !errors.Is(err, ledger.ErrAddress) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s(%q): got %v, want an ErrAddress without the text", call, dsn, err)
			}
		}
	}
	if files := folder(t, dir); len(files) != 0 {
		t.Errorf("it made %v", files)
	}
}

func TestOpenTakesPathsOfStrangeNames(t *testing.T) {
	ledgertest.OfSQLite(t)
	dir := t.TempDir()
	t.Chdir(dir)
	must(t, os.Mkdir("a=b", 0o700))
	names := []string{"jobs.db", "a=b/jobs.db", "../" + filepath.Base(dir) + "/up.db", "./file:jobs.db",
		"./host=x dbname=y", "./jobs.db?sync=normal", "./x password=y", "sqlite:./file:old.db",
		"sqlite:./b:c.db?sync=normal", "a=b/c:d.db", "my jobs.db", "a b=c.db"}
	for _, dsn := range names {
		s, err := ledger.Open(t.Context(), dsn)
		if err != nil {
			t.Errorf("%q: %v", dsn, err)
			continue
		}
		again := s.Path()
		must(t, s.Close())
		if s, err = ledger.OpenExisting(t.Context(), again); err != nil { // its absolute path
			t.Errorf("%q: %v", again, err)
			continue
		}
		must(t, s.Close())
	}
}
