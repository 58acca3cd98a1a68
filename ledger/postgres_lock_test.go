package ledger_test

import (
	"errors"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// loginRole makes a user who may connect, and no more, and returns the address of the ledger for this user.
func loginRole(t *testing.T, conn *pgx.Conn, dsn, name string) string {
	t.Helper()
	execute(t, conn, `CREATE ROLE `+name+` LOGIN PASSWORD 'x'`)
	u, err := url.Parse(dsn)
	must(t, err)
	u.User = url.UserPassword(name, "x")
	return u.String()
}

// TestPostgresLockNeedsTheRightToWrite: a user who may not write cannot keep the writers waiting.
func TestPostgresLockNeedsTheRightToWrite(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	dsn := ledgertest.PostgresServer(t).URL()
	s := openAt(t, dsn)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	admin := connect(t, dsn)
	stranger := connect(t, loginRole(t, admin, dsn, "stranger"))
	for _, rights := range []string{"", `GRANT USAGE ON SCHEMA jobledger TO stranger`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA jobledger TO stranger`} {
		if rights != "" {
			execute(t, admin, rights)
		}
		if _, err := stranger.Exec(t.Context(), takeLock); err == nil {
			t.Errorf("after %q the table can be locked", rights)
		}
	}
	execute(t, stranger, `SELECT pg_advisory_lock(`+theLock+`)`)
	for range 3 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	}
	wantActors(t, s, "a", "b", "b", "b")

	// Who may write may also be a program of an older version.
	execute(t, stranger, `SELECT pg_advisory_unlock_all()`)
	execute(t, admin, `GRANT INSERT ON jobledger.events TO stranger`)
	execute(t, stranger, `SELECT pg_advisory_lock(`+theLock+`)`)
	done := make(chan error)
	go func() {
		done <- s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "c") })
	}()
	eventually(t, "waiting", func() bool { return len(waiting(t, admin)) == 1 })
	execute(t, stranger, `SELECT pg_advisory_unlock_all()`)
	must(t, <-done)
	wantActors(t, s, "a", "b", "b", "b", "c")
}

// TestPostgresOlderWriters: programs older than schema 15 exclude each other with the advisory lock alone.
// Next to them no event is lost, pos stays dense, and time does not run backwards; the ledger is checked at
// the end.
func TestPostgresOlderWriters(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	rounds := ledgertest.Size(10, 30, 150)
	var wg sync.WaitGroup
	for range 3 {
		older := connect(t, s.DSN())
		execute(t, older, `SET search_path = jobledger`)
		wg.Go(func() {
			for range rounds {
				for _, statement := range []string{`BEGIN`, `SELECT pg_advisory_xact_lock(` + theLock + `)`,
					`INSERT INTO events (pos, kind, at, actor, data) SELECT pos + 1, kind,
						greatest(at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), actor, data
						FROM events ORDER BY pos DESC LIMIT 1`, `COMMIT`} {
					if _, err := older.Exec(t.Context(), statement); err != nil {
						t.Errorf("an older program's %.40s: %v", statement, err)
						return
					}
				}
			}
		})
		newer := ledgertest.OpenAt(t, s.DSN())
		wg.Go(func() {
			for range rounds {
				err := newer.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(actors(t, s)); n != 1+6*rounds {
		t.Errorf("%d events, want %d", n, 1+6*rounds)
	}
}

// A table of the lock that is gone is found as the ledger is opened, and can be put back.
func TestPostgresLockTableIsRepaired(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	must(t, ledgertest.OpenAt(t, dsn).Close())
	execute(t, connect(t, dsn), `DROP TABLE jobledger.write_lock`)
	s := openAt(t, dsn)
	err := s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	if !errors.Is(err, ledger.ErrAltered) {
		t.Errorf("got %v, want ErrAltered", err)
	}
	must(t, s.WriteRepair(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.RepairSchema(t.Context(), "write_lock")
		return err
	}))
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	wantActors(t, s, "a")
}

// TestPostgresOpenOnce: what opens a ledger for one command finds a guard that is gone, that does not fire,
// or that has company. It does not ask about tables and indexes, as what opens the ledger to stay does.
func TestPostgresOpenOnce(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	must(t, ledgertest.OpenAt(t, dsn).Close())
	admin := connect(t, dsn)
	for _, tt := range []struct {
		alter, repair string
		once          bool // it is seen by what opens the ledger once
	}{
		{`SELECT 1`, `SELECT 1`, true},
		{`ALTER TABLE jobledger.events DISABLE TRIGGER events_no_update`,
			`ALTER TABLE jobledger.events ENABLE ALWAYS TRIGGER events_no_update`, true},
		{`CREATE TRIGGER other BEFORE INSERT ON jobledger.jobs FOR EACH ROW EXECUTE FUNCTION
    suppress_redundant_updates_trigger()`, `DROP TRIGGER other ON jobledger.jobs`, true},
		{`ALTER INDEX jobledger.ready RENAME TO unready`, `ALTER INDEX jobledger.unready RENAME TO ready`,
			false},
		{`CREATE RULE quiet AS ON DELETE TO jobledger.jobs DO INSTEAD NOTHING`,
			`DROP RULE quiet ON jobledger.jobs`, true},
		{`DROP TRIGGER names_no_change ON jobledger.names`, ``, true},
	} {
		execute(t, admin, tt.alter)
		for _, once := range []bool{true, false} {
			open := ledger.OpenExisting
			if once {
				open = ledger.OpenOnce
			}
			s, err := open(t.Context(), dsn)
			must(t, err)
			err = s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			want := tt.alter != tt.repair && (tt.once || !once)
			if errors.Is(err, ledger.ErrAltered) != want || err != nil && !want {
				t.Errorf("%s, once %t: got %v, want ErrAltered: %t", tt.alter, once, err, want)
			}
			must(t, s.Close())
		}
		if tt.repair != "" {
			execute(t, admin, tt.repair)
		}
	}
}
