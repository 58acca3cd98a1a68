package schema_test

import (
	"os"
	"strings"
	"testing"
)

// sqlite.sql is the schema as all steps leave it: each table with its indexes and triggers, then the views.
// It is there to be read; no program executes it.
func TestSQLiteAsItIs(t *testing.T) {
	const header = "-- The schema of a ledger on SQLite as all steps leave it, to be read. A test writes it.\n"
	db := plainLedger(t)
	rows, err := db.Query(`
SELECT s.sql FROM sqlite_schema s JOIN sqlite_schema o ON o.name = s.tbl_name AND o.type IN ('table', 'view')
WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite_%'
ORDER BY o.type, o.rowid, s.type = 'trigger', s.type = 'index', s.rowid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var now strings.Builder
	now.WriteString(header)
	for rows.Next() {
		var sql string
		if err := rows.Scan(&sql); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(sql, "CREATE TABLE") || strings.HasPrefix(sql, "CREATE VIEW") {
			now.WriteString("\n")
		}
		now.WriteString(sql + ";\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("sqlite.sql", []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was, err := os.ReadFile("sqlite.sql"); err != nil || string(was) != now.String() {
		t.Errorf("sqlite.sql is not the schema that the steps make (%v); rewrite it: "+
			"go test ./schema -run TestSQLiteAsItIs -update", err)
	}
}
