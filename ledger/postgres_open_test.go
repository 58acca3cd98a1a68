package ledger_test

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// Many processes may open an empty database at the same time. Each of them finds a complete schema, created
// once.
func TestPostgresOpenEmptyDatabaseByManyStores(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	const stores = 16
	start := make(chan struct{})
	errs := make([]error, stores)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			<-start
			s, err := ledger.Open(t.Context(), dsn)
			if err == nil {
				err = errors.Join(s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") }),
					s.Close())
			}
			errs[i] = err
		})
	}
	close(start)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("store %d: %v", i, err)
		}
	}
	if n := len(actors(t, openAt(t, dsn))); n != stores {
		t.Errorf("%d events, want %d", n, stores)
	}
}

// objects returns the objects of a database, without those of the server.
func objects(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return ask[string](t, conn, `SELECT coalesce(string_agg(o, ' ' ORDER BY o), '') FROM (
		SELECT format('%s:%s', nspname, obj_description(oid, 'pg_namespace')) AS o
FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)'
		UNION ALL SELECT format('%s.%s %s', relnamespace::regnamespace, relname, relkind)
FROM pg_class WHERE relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
		UNION ALL SELECT format('%s.%s()', pronamespace::regnamespace, proname)
FROM pg_proc WHERE pronamespace::regnamespace::text !~ '^(pg_|information_schema)') AS all_of_them`)
}

func TestPostgresOpenRefusesForeignSchemasUnchanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make  []string
		dsn   string // appended to the address
		first bool   // create a ledger first
		want  error
		exist error // of OpenExisting
	}{
		"nothing": {exist: ledger.ErrNoLedger},
		"foreign schema": {make: []string{`CREATE SCHEMA jobledger`,
			`CREATE TABLE jobledger.events (pos bigint)`,
			`INSERT INTO jobledger.events VALUES (1)`}, want: ledger.ErrNotALedger, exist: ledger.ErrNotALedger},
		"foreign schema with a comment": {make: []string{`CREATE SCHEMA jobledger`,
			`COMMENT ON SCHEMA jobledger IS 'mine'`},
			want: ledger.ErrNotALedger, exist: ledger.ErrNotALedger},
		"foreign empty schema": {make: []string{`CREATE SCHEMA jobledger`}, want: ledger.ErrNotALedger,
			exist: ledger.ErrNotALedger},
		"another schema next to it": {make: []string{`CREATE SCHEMA jobledger`}, dsn: "schema=jobs2",
			exist: ledger.ErrNoLedger},
		"a newer schema": {first: true, make: []string{`UPDATE jobledger.about SET schema_version = 99`,
			`UPDATE jobledger.compatibility SET readable_from = 98, writable_from = 99`},
			want: ledger.ErrNewerSchema, exist: ledger.ErrNewerSchema},
		"no such database": {dsn: "dbname=jobledger_test_none", want: ledger.ErrNoLedger,
			exist: ledger.ErrNoLedger},
		"unknown option":             {dsn: "sync=often", want: ledger.ErrAddress, exist: ledger.ErrAddress},
		"a schema of the server":     {dsn: "schema=pg_catalog", want: ledger.ErrAddress, exist: ledger.ErrAddress},
		"a schema that needs quotes": {dsn: "schema=x%22y", want: ledger.ErrAddress, exist: ledger.ErrAddress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := ledgertest.Postgres(t)
			if c.first {
				must(t, ledgertest.OpenAt(t, dsn).Close())
			}
			conn := connect(t, dsn)
			for _, statement := range c.make {
				execute(t, conn, statement)
			}
			if c.dsn != "" {
				dsn = with(dsn, c.dsn)
			}
			before := objects(t, conn)
			s, err := ledger.OpenExisting(t.Context(), dsn)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.exist) {
				t.Errorf("one that must be there: got %v, want %v", err, c.exist)
			}
			if after := objects(t, conn); after != before {
				t.Errorf("one that must be there: the database has\n%s\nand had\n%s", after, before)
			}
			s, err = ledger.Open(t.Context(), dsn)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if after := objects(t, conn); after != before && c.want != nil {
				t.Errorf("the database has\n%s\nand had\n%s", after, before)
			}
		})
	}
}

// Addresses appear in errors and logs.
func TestPostgresErrorsShowNoPassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://ann:geheim@127.0.0.1:1/jobs",
		"postgres://ann:geheim@127.0.0.1:1/jobs?sync=often",
		"postgres://ann:geheim@127.0.0.1:port/jobs",
		"postgres://ann:geheim@127.0.0.1:1/jobs?sslmode=sometimes",
	} {
		s, err := ledger.Open(t.Context(), dsn)
		if err == nil {
			_ = s.Close()
			t.Fatalf("%s was opened", dsn)
		}
		if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error says %v", err)
		}
	}
	s := onPostgres(t)
	if u, err := url.Parse(s.DSN()); err == nil {
		if password, ok := u.User.Password(); ok && strings.Contains(s.Path(), password) {
			t.Errorf("the path is %s", s.Path())
		}
	}
}

// A password file that others may read is refused, as by libpq, and the error says so.
func TestPostgresPasswordFileOfOthersIsRefused(t *testing.T) {
	dsn := ledgertest.Postgres(t)
	u, err := url.Parse(dsn)
	must(t, err)
	password, _ := u.User.Password()
	if password == "" {
		t.Skip("this server asks for no password")
	}
	file := filepath.Join(t.TempDir(), "pgpass")
	must(t, os.WriteFile(file, []byte("*:*:*:*:"+password+"\n"), 0o600))
	u.User = url.User(u.User.Username())
	for name, at := range map[string]string{
		"variable": u.String(), "option": with(u.String(), "passfile="+url.QueryEscape(file)),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "variable" {
				t.Setenv("PGPASSFILE", file)
			}
			must(t, os.Chmod(file, 0o600))
			must(t, ledgertest.OpenAt(t, at).Close())
			for _, mode := range []os.FileMode{0o640, 0o604} {
				must(t, os.Chmod(file, mode))
				s, err := ledger.Open(t.Context(), at)
				if err == nil {
					_ = s.Close()
				}
				if err == nil || !strings.Contains(err.Error(), file+" was not used") {
					t.Errorf("mode %o: got %v", mode, err)
				}
			}
		})
	}
}

// runRoles runs roles.sql, as often as an administrator may.
func runRoles(t *testing.T, psql, at string) {
	t.Helper()
	script := exec.Command(psql, "-X", "-q", "-f", filepath.Join("..", "schema", "postgres", "roles.sql"), at)
	script.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8")
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The user that made a ledger still owns it after roles.sql has run, and again after a migration.
func TestPostgresRolesKeepTheCreator(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skipf("no psql: %v", err)
	}
	at := ledgertest.PostgresServer(t).URL()
	admin := connect(t, at)
	dsn := loginRole(t, admin, at, "creator")
	execute(t, admin, `GRANT CREATE ON DATABASE postgres TO creator`)
	s := openAt(t, dsn)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	for range 2 {
		runRoles(t, psql, at)
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
		execute(t, connect(t, dsn), `ALTER TABLE jobledger.write_lock ADD COLUMN more bigint`)
		execute(t, connect(t, dsn), `ALTER TABLE jobledger.write_lock DROP COLUMN more`)
	}
	wantActors(t, s, "a", "b", "b")
}

// roles creates a ledger on a server of its own, and returns its address for a member of each role.
func roles(t *testing.T) (owner *ledger.Store, address map[string]string) {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skipf("no psql: %v", err)
	}
	at := ledgertest.PostgresServer(t).URL()
	owner = openAt(t, at)
	conn := connect(t, at)
	runRoles(t, psql, at)
	address = make(map[string]string)
	for _, role := range []string{"jobledger_worker", "jobledger_auditor", "pg_read_all_data", "none"} {
		user := "member_of_" + role
		execute(t, conn, `CREATE ROLE `+user+` LOGIN PASSWORD 'x'`)
		if role != "none" {
			execute(t, conn, `GRANT `+role+` TO `+user)
		}
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, "x")
		address[role] = u.String()
	}
	return owner, address
}

// The worker role may do everything that the program does with an open ledger. The read role gets ErrReadOnly
// for a write, and nothing is written.
func TestPostgresRoles(t *testing.T) {
	t.Parallel()
	owner, address := roles(t)
	write(t, owner, func(tx *ledger.Tx) error { return note(t.Context(), tx, "owner") })

	worker := ledgertest.OpenAt(t, address["jobledger_worker"])
	write(t, worker, func(tx *ledger.Tx) error {
		who := event.Worker{Name: "w", Boot: "b"}
		return errors.Join(tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: "worker",
			Worker: who, Body: &event.WorkerStopped{}}),
			tx.Insert(insertSeen, "b", int64(1)), tx.Put(swapSeen, "b", int64(1), int64(2)),
			tx.PutBody(2, nil, []byte("body")))
	})
	sound(t, worker)
	for _, forbidden := range []string{`UPDATE events SET at = 0`, `DELETE FROM events`,
		`TRUNCATE events CASCADE`, `DROP TABLE jobs`,
		`ALTER TABLE events DISABLE TRIGGER ALL`, `UPDATE about SET schema_version = 9`} {
		err := worker.Write(t.Context(), func(tx *ledger.Tx) error { _, err := tx.Exec(forbidden); return err })
		if !errors.Is(err, ledger.ErrReadOnly) {
			t.Errorf("a worker's %s: got %v, want ErrReadOnly", forbidden, err)
		}
	}

	for _, role := range []string{"jobledger_auditor", "pg_read_all_data"} {
		auditor := ledgertest.OpenAt(t, address[role])
		wantActors(t, auditor, "owner", "worker")
		for range 2 {
			err := auditor.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "owner") })
			if !errors.Is(err, ledger.ErrReadOnly) {
				t.Errorf("%s writes: got %v, want ErrReadOnly", role, err)
			}
		}
	}
	wantActors(t, owner, "owner", "worker")

	for what, dsn := range map[string]string{
		"opens a ledger": address["none"],
		"makes a ledger": with(address["none"], "schema=jobs2"),
	} {
		s, err := ledger.Open(t.Context(), dsn)
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, ledger.ErrReadOnly) {
			t.Errorf("a user without any right %s: got %v", what, err)
		}
	}
}

// A hot standby, or a server that is set to read only, accepts no writes.
func TestPostgresReadOnlyServerIsRead(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	execute(t, connect(t, s.DSN()),
		`DO $$ BEGIN EXECUTE
format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	reader := ledgertest.OpenAt(t, s.DSN())
	wantActors(t, reader, "a")
	err := reader.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	if !errors.Is(err, ledger.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	wantActors(t, s, "a")
}
