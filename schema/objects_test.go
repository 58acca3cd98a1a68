package schema_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

var update = flag.Bool("update", false, "rewrite the files that show the schema")

func TestPostgresObjectsOfNewLedger(t *testing.T) {
	t.Parallel()
	_, conn := ledgerOnServer(t)
	rows, err := conn.Query(t.Context(), schema.SelectPostgresObjects)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			t.Fatal(err)
		}
		got.WriteString(kind + "\t" + name + "\t" + definition + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("postgres/objects.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("postgres/objects.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the migrations make other objects than postgres/objects.txt has; "+
			"review the difference, then rewrite it with -update:\n%s", got.String())
	}
}

// TestGuardsAreRepaired finds and repairs guards that are disabled, missing, altered, or superfluous.
func TestGuardsAreRepaired(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, want string }{
		{"on another table", `DROP TRIGGER bodies_no_change ON bodies; CREATE TRIGGER bodies_no_change
			BEFORE UPDATE ON names EXECUTE FUNCTION refuse('bodies are written once')`,
			"trigger bodies_no_change was altered"},
		{"a view", `DROP VIEW attempts; DROP VIEW current; CREATE VIEW current AS SELECT 1 AS id`,
			"view attempts is missing; view current was altered"},
		{"an index of another column", `DROP INDEX leases; CREATE INDEX leases ON jobs (finished_at)`,
			"index leases was altered"},
		{"a table with what reads it", `DROP TABLE jobs CASCADE; CREATE TABLE jobs (n bigint PRIMARY KEY)`,
			"index jobs_id_key is missing; index keys is missing; index leases is missing; " +
				"index ready is missing; table jobs was altered; trigger jobs_no_removal is missing; " +
				"trigger jobs_no_rewrite is missing; view attempts is missing; " +
				"view current is missing; view dependencies is missing; view history is missing"},
		{"off", `ALTER TABLE events DISABLE TRIGGER events_no_update`, "trigger events_no_update was altered"},
		{"gone", `DROP TRIGGER events_only_append ON events`, "trigger events_only_append is missing"},
		{"silent for a replica", `ALTER TABLE bodies ENABLE TRIGGER bodies_no_change`,
			"trigger bodies_no_change was altered"},
		{"hollow", `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger
			LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`, "function refuse was altered"},
		{"one too many", `CREATE TRIGGER mine BEFORE INSERT ON events EXECUTE FUNCTION refuse('x')`,
			"trigger mine is not part of the schema"},
		{"a word", `UPDATE kinds SET kind = 'done' WHERE kind = 'succeeded'`,
			`table kinds calls 4 "done" instead of "succeeded"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, conn := ledgerOnServer(t)
			if _, err := conn.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			if problems := guards(t, store); strings.Join(problems, "; ") != c.want {
				t.Errorf("got %q, want %q", problems, c.want)
			}
			err := store.Write(t.Context(), func(tx *ledger.Tx) error {
				repaired, err := tx.RepairSchema(t.Context(), "jobs", "queues", "limits", "group_heads", "group_rates",
					"presence", "keyframes", "kinds", "states")
				t.Log(repaired)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if problems := guards(t, store); len(problems) > 0 {
				t.Errorf("afterwards: %q", problems)
			}
			for _, statement := range []string{
				`UPDATE events SET at = 0`,
				`INSERT INTO events (pos, kind, at, actor) VALUES (99, 16, 0, 1)`,
				`UPDATE bodies SET body = ''`,
				`DELETE FROM blocks`,
				`INSERT INTO blocks (n, hash) VALUES (1, decode(repeat('00', 32), 'hex'))`,
				`INSERT INTO blocks (n, hash) VALUES (0, '')`,
				`TRUNCATE seals`,
				`INSERT INTO seals (n, size, at, root) VALUES (2, 1, 1, decode(repeat('00', 32), 'hex'))`,
				`INSERT INTO seals (n, size, at, root) VALUES (1, 2, 1, decode(repeat('00', 32), 'hex')),
					(3, 2, 1, decode(repeat('00', 32), 'hex'))`,
			} {
				_, err := conn.Exec(t.Context(), `SET session_replication_role = replica; `+statement)
				if err == nil {
					t.Errorf("%s is not refused", statement)
				}
			}
		})
	}
}

// TestConstraintsAreNotRepaired: the index of a missing constraint is not created, and neither is anything
// else.
func TestConstraintsAreNotRepaired(t *testing.T) {
	store, conn := ledgerOnServer(t)
	_, err := conn.Exec(t.Context(), `ALTER TABLE jobs DROP CONSTRAINT jobs_id_key; DROP INDEX claims`)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.RepairSchema(t.Context(), "jobs")
		return err
	})
	if !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "index jobs_id_key") {
		t.Errorf("got %v", err)
	}
	const want = "index claims is missing; index jobs_id_key is missing"
	if got := strings.Join(guards(t, store), "; "); got != want {
		t.Errorf("afterwards: got %s, want %s", got, want)
	}
}

// TestObjectsAreRepaired drops each object of a ledger, except the tables of the history, and everything that
// depends on it, and repairs it.
func TestObjectsAreRepaired(t *testing.T) {
	t.Parallel()
	store, conn := ledgerOnServer(t)
	derived := []string{"jobs", "queues", "limits", "group_heads", "group_rates", "presence", "keyframes",
		"departed", "kinds", "states"}
	for object, definition := range schema.PostgresObjects() {
		kind, name, _ := strings.Cut(object, " ")
		switch {
		case kind == "table" && !slices.Contains(derived, name):
			continue
		case kind == "index" && (strings.HasSuffix(name, "_pkey") || strings.HasSuffix(name, "_key")):
			continue
		case kind == "trigger":
			table, _, _ := strings.Cut(definition, " ")
			name += " ON " + table
		}
		if _, err := conn.Exec(t.Context(), `DROP `+kind+` `+name+` CASCADE`); err != nil {
			t.Fatal(err)
		}
		missing := guards(t, store)
		err := store.Write(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.RepairSchema(t.Context(), derived...)
			return err
		})
		if left := guards(t, store); err != nil || len(missing) == 0 || len(left) > 0 {
			t.Errorf("without %s: %q; repair: %v, and then %q", object, missing, err, left)
		}
	}
}

// ledgerOnServer returns a new ledger, and another connection to it.
func ledgerOnServer(t *testing.T) (*ledger.Store, *pgx.Conn) {
	t.Helper()
	dsn := ledgertest.Postgres(t)
	store := ledgertest.OpenAt(t, dsn)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		_, err = conn.Exec(t.Context(), `SET search_path = jobledger`)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return store, conn
}

func guards(t *testing.T, store *ledger.Store) (problems []string) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		problems, err = tx.Guards(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return problems
}
