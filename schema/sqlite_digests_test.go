package schema_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"jobledger/schema"
)

// The digests that identify a ledger's file when it is opened are those of the migrated schema.
func TestSQLiteDigestsAreThoseOfTheMigrations(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would get its own database
	steps, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, step := range steps {
		if _, err := db.ExecContext(t.Context(), step.SQL); err != nil {
			t.Fatal(err)
		}
		digest := digestOf(t, db)
		fmt.Fprintln(&lines, step.Version, digest)
		if got := schema.SQLiteDigest(step.Version); got != digest && !*update {
			t.Errorf("version %d has the digest %s, and sqlite_digests.txt says %q; rewrite it with -update",
				step.Version, digest, got)
		}
	}
	if *update {
		if err := os.WriteFile("sqlite_digests.txt", []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func digestOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), schema.SelectSQLiteObjects)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var d schema.ObjectsDigest
	for rows.Next() {
		var kind, name, definition string
		if err := rows.Scan(&kind, &name, &definition); err != nil {
			t.Fatal(err)
		}
		d.Add(kind, name, definition)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return d.String()
}
