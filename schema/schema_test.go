package schema_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"jobledger/schema"
)

func TestMigrationsHaveNoGaps(t *testing.T) {
	steps, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 || len(steps) != len(files) {
		t.Fatalf("got %d migrations of %d files", len(steps), len(files))
	}
	for i, step := range steps {
		name := fmt.Sprintf("%04d_%s.sql", i+1, step.Name)
		text, err := os.ReadFile(filepath.Join("sqlite", name))
		if err != nil {
			t.Fatal(err)
		}
		if step.Version != i+1 || step.SQL != string(text) || step.Name != strings.ToLower(step.Name) {
			t.Errorf("migration %d is not the file %s", step.Version, name)
		}
	}
}

// plainLedger returns a new database with the schema and a few rows, on a connection with default settings.
func plainLedger(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	steps, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		mustExec(t, db, step.SQL)
	}
	mustExec(t, db, `
INSERT INTO names (name) VALUES ('cli:test'), ('worker:w');
INSERT INTO workers (worker, boot, host, pid, version) VALUES ('w', 'b', 'h', 7, ''), ('w', 'b2', 'h', 8, '');
INSERT INTO events (pos, job, seq, kind, at, actor, ulid, to_state, data)
    VALUES (1, 1, 1, 1, 1000000, 1, 'A', 1, '{"queue":"mail"}');
INSERT INTO events (pos, job, seq, kind, at, actor, worker, ulid, attempt, from_state, to_state)
    VALUES (2, 1, 2, 2, 2000000, 2, 1, 'T', 1, 1, 2);
INSERT INTO events (pos, kind, at, actor, data) VALUES (3, 13, 3000000, 1, '{"queue":"mail"}');
INSERT INTO bodies (pos, salt, body) VALUES (1, x'00', x'01'), (2, NULL, x'');
INSERT INTO blocks (n, hash) VALUES (0, zeroblob(32)), (1, zeroblob(32));
INSERT INTO seals (n, size, at, root) VALUES (1, 600, 1, zeroblob(32)), (2, 601, 1, zeroblob(32));`)
	return db
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// dump returns all rows of the guarded tables.
func dump(t *testing.T, db *sql.DB) (lines []string) {
	t.Helper()
	for _, table := range []string{"names", "workers", "events", "bodies", "blocks", "seals"} {
		rows, err := db.Query(`SELECT * FROM ` + table + ` ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			line := table
			for _, v := range values {
				line += fmt.Sprintf(" %v", *v.(*any))
			}
			lines = append(lines, line)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

func text(t *testing.T, db *sql.DB, query string) (s string) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

func TestGuardsRefuseChanges(t *testing.T) {
	db := plainLedger(t)
	if got := text(t, db, `PRAGMA recursive_triggers`); got != "0" {
		t.Fatalf("recursive_triggers: got %s, want the default 0", got)
	}
	before := dump(t, db)
	const (
		event  = ` INTO events (pos, job, seq, kind, at, actor) VALUES `
		name   = ` INTO names (n, name) VALUES `
		worker = ` INTO workers (n, worker, boot, host, pid, version) VALUES `
		body   = ` INTO bodies (pos, salt, body) VALUES `
		block  = ` INTO blocks (n, hash) VALUES `
		seal   = ` INTO seals (n, size, at, root) VALUES `
	)
	refused := []string{
		`UPDATE events SET data = NULL WHERE pos = 1`,
		`UPDATE OR REPLACE events SET pos = 2 WHERE pos = 1`,
		`UPDATE OR IGNORE events SET at = at + 1`,
		`UPDATE events SET at = 5 FROM (SELECT 1) WHERE pos = 1`,
		`DELETE FROM events WHERE pos = 3`,
		`DELETE FROM events`,
		`INSERT` + event + `(3, NULL, NULL, 17, 1, 1)`,            // pos taken
		`INSERT` + event + `(4, 1, 2, 3, 1, 1)`,                   // (job, seq) taken
		`INSERT` + event + `(5, NULL, NULL, 17, 1, 1)`,            // a gap
		`INSERT` + event + `(0, NULL, NULL, 17, 1, 1)`,            // before the first
		`INSERT` + event + `(-1, NULL, NULL, 17, 1, 1)`,           //
		`INSERT` + event + `(9223372036854775807, 9, 1, 1, 1, 1)`, // the highest possible pos
		`INSERT` + event + `(4, 9, 1, 1, 1, 1), (6, 9, 2, 1, 1, 1)`,
		`INSERT OR REPLACE` + event + `(2, 1, 2, 3, 1, 1)`,
		`INSERT OR REPLACE` + event + `(4, 1, 2, 3, 1, 1)`,
		`INSERT OR REPLACE` + event + `('4', '1', 2.0, 3, 1, 1)`,
		`INSERT OR REPLACE` + event + `(NULL, 1, 1, 3, 1, 1)`,
		`INSERT` + event + `(NULL, 9, 1, 1, 1, 1)`, // an event without a pos
		`INSERT OR REPLACE` + event + `(4, 9, 1, 1, 1, 1), (4, 9, 2, 1, 1, 1)`,
		`INSERT OR REPLACE` + event + `(4, 9, 1, 1, 1, 1), (5, 9, 1, 1, 1, 1)`,
		`REPLACE` + event + `(3, NULL, NULL, 17, 1, 1)`,
		`INSERT OR IGNORE` + event + `(3, NULL, NULL, 17, 1, 1)`,
		`INSERT OR IGNORE` + event + `(5, NULL, NULL, 17, 1, 1)`,
		`INSERT` + event + `(3, NULL, NULL, 17, 1, 1) ON CONFLICT (pos) DO UPDATE SET at = 0`,
		`INSERT` + event + `(3, NULL, NULL, 17, 1, 1) ON CONFLICT DO NOTHING`,
		`INSERT` + event + `(4, 1, 2, 3, 1, 1) ON CONFLICT (job, seq) DO UPDATE SET at = 0`,
		`INSERT` + event + `(4, NULL, NULL, 'claimed', 1, 1)`, // not an integer
		`UPDATE names SET name = 'x' WHERE n = 1`,
		`UPDATE names SET name = 'x' WHERE n = 1 RETURNING n`,
		`DELETE FROM names`,
		`INSERT` + name + `(1, 'x')`,
		`INSERT OR REPLACE` + name + `(1, 'x')`,
		`INSERT OR REPLACE` + name + `(9, 'cli:test')`,
		`REPLACE INTO names (name) VALUES ('cli:test')`,
		`INSERT` + name + `(1, 'x') ON CONFLICT (n) DO UPDATE SET name = 'x'`,
		`INSERT INTO names (name) VALUES ('cli:test') ON CONFLICT (name) DO UPDATE SET n = 7`,
		`UPDATE workers SET host = 'x'`,
		`DELETE FROM workers WHERE n = 2`,
		`INSERT OR REPLACE` + worker + `(1, 'x', 'b', 'h', 7, '')`,
		`INSERT OR REPLACE` + worker + `(9, 'w', 'b', 'h', 7, '')`,
		`REPLACE INTO workers (worker, boot, host, pid, version) VALUES ('w', 'b', 'h', '7', '')`,
		`INSERT` + worker + `(9, 'w', 'b', 'h', 7, '') ON CONFLICT DO UPDATE SET n = 9`,
		`UPDATE bodies SET body = x'02' WHERE pos = 1`,
		`UPDATE bodies SET pos = 9 WHERE pos = 1`,
		`INSERT` + body + `(1, NULL, x'02')`,
		`INSERT OR REPLACE` + body + `(1, NULL, x'02')`,
		`REPLACE` + body + `('1', NULL, x'02')`,
		`INSERT` + body + `(1, NULL, x'02') ON CONFLICT (pos) DO UPDATE SET body = excluded.body`,
		`UPDATE blocks SET hash = randomblob(32)`,
		`DELETE FROM blocks WHERE n = 1`,
		`INSERT` + block + `(1, randomblob(32))`,
		`INSERT OR REPLACE` + block + `(1, randomblob(32))`,
		`INSERT` + block + `(1, randomblob(32)) ON CONFLICT (n) DO UPDATE SET hash = excluded.hash`,
		`INSERT` + block + `(3, zeroblob(32))`, // a gap
		`INSERT` + block + `(-1, zeroblob(32))`,
		`INSERT` + block + `(2, zeroblob(31))`, // no hash
		`UPDATE seals SET size = 5`,
		`DELETE FROM seals WHERE n = 2`,
		`INSERT OR REPLACE` + seal + `(2, 601, 1, randomblob(32))`,
		`INSERT` + seal + `(4, 700, 1, zeroblob(32))`, // a gap
		`INSERT` + seal + `(0, 1, 1, zeroblob(32))`,
	}
	for _, query := range refused {
		if _, err := db.Exec(query); err == nil {
			t.Errorf("not refused: %s", query)
		}
		if after := dump(t, db); !slices.Equal(after, before) {
			t.Fatalf("%s changed the rows to\n%s", query, strings.Join(after, "\n"))
		}
	}

	mustExec(t, db, `VACUUM`)
	if got := text(t, db, `PRAGMA integrity_check`); got != "ok" {
		t.Errorf("integrity_check: %s", got)
	}
	if after := dump(t, db); !slices.Equal(after, before) {
		t.Errorf("VACUUM changed the rows to\n%s", strings.Join(after, "\n"))
	}
	mustExec(t, db, `INSERT INTO events (pos, job, seq, kind, at, actor) VALUES (4, 1, 3, 3, 4000000, 2)`)
	if got := text(t, db, `SELECT max(pos) FROM events`); got != "4" {
		t.Errorf("the pos after what was refused: got %s, want 4", got)
	}
}

func TestBodiesCanBeErased(t *testing.T) {
	db := plainLedger(t)
	mustExec(t, db, `DELETE FROM bodies WHERE pos IN (1, 2)`)
	if got := text(t, db, `SELECT count(*) || ' ' || (SELECT count(*) FROM bodies) FROM events`); got != "3 0" {
		t.Errorf("events and bodies: got %s, want 3 0", got)
	}
}

// TestViewsColumns: the views are a contract. Columns may be added at the end, none renamed or removed.
func TestViewsColumns(t *testing.T) {
	db := plainLedger(t)
	for view, want := range map[string]string{
		"history": "pos job seq kind at actor worker token attempt from_state to_state data",
		"attempts": "job attempt queue worker boot host pid claimed_at last_heartbeat ended_at " +
			"outcome exit_code signal",
	} {
		rows, err := db.Query(`SELECT * FROM ` + view)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rows.Columns()
		if err != nil || !strings.HasPrefix(strings.Join(got, " ")+" ", want+" ") {
			t.Errorf("%s: got %s, %v, want %s", view, got, err, want)
		}
		_ = rows.Close()
	}
	const row = `SELECT pos || job || seq || kind || at || actor || worker || token || attempt ||
		from_state || to_state FROM history WHERE pos = 2`
	if got := text(t, db, row); got != "2A2claimed1970-01-01T00:00:02.000000Zworker:wwT1queuedclaimed" {
		t.Errorf("history of a claim: %s", got)
	}
}
