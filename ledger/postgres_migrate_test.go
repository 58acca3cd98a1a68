package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

// makeOld makes a ledger at dsn as a program did that knew the schema up to that version.
func makeOld(t *testing.T, conn *pgx.Conn, version int) {
	t.Helper()
	steps, err := schema.Postgres()
	must(t, err)
	execute(t, conn, `CREATE SCHEMA jobledger`)
	execute(t, conn, `COMMENT ON SCHEMA jobledger IS 'jobledger: a ledger of jobs'`)
	execute(t, conn, `SET search_path = jobledger`)
	for _, step := range steps[:version] {
		execute(t, conn, step.SQL, pgx.QueryExecModeSimpleProtocol)
		execute(t, conn, `UPDATE about SET schema_version = $1`, step.Version)
	}
	execute(t, conn, `SET search_path = jobledger`)
}

// A ledger on a server is migrated by Migrate alone, which waits for the writers.
func TestPostgresMigrateIsExplicit(t *testing.T) {
	t.Parallel()
	steps, err := schema.Postgres()
	must(t, err)
	for version := len(steps) - 1; version > 0; version -= ledgertest.Size(7, 7, 1) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			dsn := ledgertest.Postgres(t)
			conn := connect(t, dsn)
			makeOld(t, conn, version)
			for _, open := range []func() (*ledger.Store, error){
				func() (*ledger.Store, error) { return ledger.Open(t.Context(), dsn) },
				func() (*ledger.Store, error) { return ledger.OpenExisting(t.Context(), dsn) },
			} {
				if _, err := open(); !errors.Is(err, ledger.ErrOlderSchema) {
					t.Errorf("got %v, want ErrOlderSchema", err)
				}
			}
			if at := ask[int](t, conn, `SELECT schema_version FROM about`); at != version {
				t.Errorf("opening it changed the version to %d", at)
			}
			execute(t, conn, `BEGIN`)
			lock := takeLock // as a writer of this version does
			if version < 15 {
				lock = `SELECT pg_advisory_xact_lock(` + theLock + `)`
			}
			execute(t, conn, lock)
			migrated := make(chan error)
			go func() { migrated <- ledger.Migrate(t.Context(), dsn) }()
			eventually(t, "waiting", func() bool { return len(waiting(t, conn)) == 1 })
			execute(t, conn, `COMMIT`)
			must(t, <-migrated)
			must(t, ledger.Migrate(t.Context(), dsn)) // nothing is left to do
			s := openAt(t, dsn)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			wantActors(t, s, "a")
			read(t, s, func(tx *ledger.Tx) error {
				problems, err := tx.Guards(t.Context())
				if len(problems) > 0 {
					t.Errorf("got %v", problems)
				}
				return err
			})
		})
	}
}

// A program goes on with a newer schema for as long as that says it may, the one that had it open too.
func TestPostgresNewerSchemaSaysWhoMayGoOn(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	running := openAt(t, dsn)
	conn := connect(t, dsn)
	mayWrite := func(s *ledger.Store) error {
		return s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	}
	execute(t, conn, `UPDATE jobledger.about SET schema_version = schema_version + 1`)
	execute(t, conn, `ALTER TABLE jobledger.jobs ADD COLUMN of_a_newer_version bigint`)
	must(t, mayWrite(running))
	must(t, mayWrite(ledgertest.OpenAt(t, dsn)))

	execute(t, conn, `UPDATE jobledger.compatibility SET writable_from = writable_from + 1`)
	started := ledgertest.OpenAt(t, dsn)
	for name, s := range map[string]*ledger.Store{"running": running, "started": started} {
		if err := mayWrite(s); !errors.Is(err, ledger.ErrNewerSchema) {
			t.Errorf("%s: got %v, want ErrNewerSchema", name, err)
		}
		wantActors(t, s, "a", "a")
	}

	execute(t, conn, `UPDATE jobledger.compatibility SET readable_from = writable_from`)
	if _, err := ledger.Open(t.Context(), dsn); !errors.Is(err, ledger.ErrNewerSchema) {
		t.Errorf("got %v, want ErrNewerSchema", err)
	}
	execute(t, conn, `UPDATE jobledger.about SET schema_version = schema_version - 1`)
	execute(t, conn, `UPDATE jobledger.compatibility SET readable_from = 15, writable_from = 15`)
	execute(t, conn, `ALTER TABLE jobledger.jobs DROP COLUMN of_a_newer_version`)
}
