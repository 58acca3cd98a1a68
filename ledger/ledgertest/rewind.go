package ledgertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
)

// Rewind keeps a copy of the ledger at dsn, and returns a function that gives the ledger this content again,
// while it is open: as a failover to a standby does that lacks what was recorded since. On PostgreSQL it cuts
// all connections, too.
func Rewind(t testing.TB, dsn string) (back func()) {
	t.Helper()
	ctx := context.Background()
	if ledger.IsServerAddress(dsn) {
		return rewindPostgres(ctx, t, dsn)
	}
	path := strings.TrimPrefix(dsn, "sqlite:")
	path, _, _ = strings.Cut(path, "?")
	kept := filepath.Join(t.TempDir(), "kept.db")
	run := func(do func(*sql.Conn) error) {
		t.Helper()
		u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(5000)"}
		db, err := sql.Open("sqlite", u.String())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c, err := db.Conn(ctx)
		if err == nil {
			err = errors.Join(do(c), c.Close())
		}
		if err != nil {
			t.Fatalf("rewind %s: %v", dsn, err)
		}
	}
	run(func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `VACUUM INTO ?`, kept)
		return err
	})
	return func() { t.Helper(); run(func(c *sql.Conn) error { return rewindSQLite(ctx, c, kept) }) }
}

func rewindSQLite(ctx context.Context, c *sql.Conn, kept string) error {
	texts := func(query string) (all []string, err error) {
		rows, err := c.QueryContext(ctx, query)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			all = append(all, text)
		}
		return all, rows.Err()
	}
	if _, err := c.ExecContext(ctx, `ATTACH ? AS kept`, kept); err != nil {
		return err
	}
	triggers, err := texts(`SELECT sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	steps, err := texts(`SELECT 'DROP TRIGGER ' || name FROM sqlite_schema
		WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	moves, err := texts(`SELECT 'DELETE FROM main.' || name || '; INSERT INTO main.' || name || ' (' ||
		columns || ') SELECT ' || columns || ' FROM kept.' || name FROM (
		SELECT m.name, group_concat(c.name) AS columns
		FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
		AND m.name NOT LIKE 'sqlite%' GROUP BY m.name)`)
	if err != nil {
		return err
	}
	steps = append(append(append([]string{`BEGIN IMMEDIATE`}, steps...), moves...), triggers...)
	for _, step := range append(steps, `DELETE FROM main.sqlite_sequence`,
		`INSERT INTO main.sqlite_sequence SELECT * FROM kept.sqlite_sequence`, `COMMIT`, `DETACH kept`) {
		if _, err := c.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func rewindPostgres(ctx context.Context, t testing.TB, dsn string) (back func()) {
	t.Helper()
	run := func(statement string) {
		t.Helper()
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Del("sync") // which is ours
		u.RawQuery = q.Encode()
		conn, err := pgx.Connect(ctx, u.String())
		if err == nil {
			_, err = conn.Exec(ctx, statement)
			err = errors.Join(err, conn.Close(ctx))
		}
		if err != nil {
			t.Fatalf("rewind: %v", err)
		}
	}
	const each = `DO $$ DECLARE t record; BEGIN %s
	FOR t IN SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ') AS columns
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname = 'jobledger' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0
		AND NOT a.attisdropped AND a.attgenerated = '' GROUP BY c.relname LOOP %s END LOOP; %s END $$`
	run(fmt.Sprintf(each, `DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept;`,
		`EXECUTE format('CREATE TABLE kept.%I AS TABLE jobledger.%I', t.name, t.name);`, ``))
	return func() {
		t.Helper()
		run(fmt.Sprintf(each, `CREATE TABLE kept.triggers AS SELECT tgrelid::regclass AS owner, tgname, tgenabled
			FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'jobledger.%';
			PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid();`,
			`EXECUTE format('ALTER TABLE jobledger.%I DISABLE TRIGGER ALL', t.name);
			EXECUTE format('DELETE FROM jobledger.%I', t.name);
			EXECUTE format('INSERT INTO jobledger.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM kept.%I', t.name,
				t.columns, t.columns, t.name);
			EXECUTE format('ALTER TABLE jobledger.%I ENABLE TRIGGER ALL', t.name);`,
			`FOR t IN SELECT * FROM kept.triggers LOOP
				EXECUTE format('ALTER TABLE %s %s TRIGGER %I', t.owner, CASE t.tgenabled WHEN 'A' THEN 'ENABLE ALWAYS'
					WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'D' THEN 'DISABLE' ELSE 'ENABLE' END, t.tgname);
			END LOOP;`))
	}
}
