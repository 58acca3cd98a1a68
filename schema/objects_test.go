package schema_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

var update = flag.Bool("update", false, "rewrite postgres/objects.txt")

func TestPostgresObjectsAreThoseOfANewLedger(t *testing.T) {
	ctx := context.Background()
	dsn := ledgertest.Postgres(t)
	ledgertest.OpenAt(t, dsn)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `SET search_path = jobledger`); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(ctx, schema.SelectPostgresObjects)
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
		t.Errorf("the migrations make other objects than postgres/objects.txt says; look at the difference, then rewrite it with -update:\n%s", got.String())
	}
}

// A guard that is off, gone, or changed is found; so is one too many.
func TestVerifySeesGuardsThatWereTouched(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ name, sql, want string }{
		{"off", `ALTER TABLE events DISABLE TRIGGER events_no_update`, "trigger events_no_update was altered"},
		{"gone", `DROP TRIGGER events_only_append ON events`, "trigger events_only_append is missing"},
		{"silent for a replica", `ALTER TABLE bodies ENABLE TRIGGER bodies_no_change`, "trigger bodies_no_change was altered"},
		{"hollow", `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`, "function refuse was altered"},
		{"one too many", `CREATE TRIGGER mine BEFORE INSERT ON events EXECUTE FUNCTION refuse('x')`, "trigger mine is not part of the schema"},
		{"an index less", `DROP INDEX claims`, "index claims is missing"},
		{"a word", `UPDATE kinds SET kind = 'done' WHERE kind = 'succeeded'`, `table kinds calls 4 "done" instead of "succeeded"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := ledgertest.Postgres(t)
			store := ledgertest.OpenAt(t, dsn)
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(ctx)
			if _, err := conn.Exec(ctx, `SET search_path = jobledger`); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(ctx, c.sql); err != nil {
				t.Fatal(err)
			}
			var problems []string
			err = store.Read(ctx, func(tx *ledger.Tx) (err error) {
				problems, err = tx.Guards(ctx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(problems, "; ") != c.want {
				t.Errorf("got %q, want %q", problems, c.want)
			}
		})
	}
}
