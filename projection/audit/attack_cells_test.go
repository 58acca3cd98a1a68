package audit_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

var cells = flag.Int("cells", 0,
	"so many edits of single cells are tried, -1: all some 12,000; default 30, with -long 4000")

// unsealed are the columns in which some edit passes verify, because the value is stored only once. The page
// operations.md lists them.
var unsealed = []string{"events.actor", "events.at", "events.data",
	"events.digest", "events.job", "events.ulid",
	"names.name", "workers.boot",
	"workers.host", "workers.pid", "workers.version", "workers.worker"}

// edit changes one cell.
type edit struct{ table, column, statement string }

// edits returns the edits of every cell of a ledger's file, in a fixed order.
func edits(t *testing.T, path string) (all []edit) {
	t.Helper()
	db, err := sql.Open("sqlite", fileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list := func(query string) (texts []string) {
		rows, err := db.QueryContext(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		return texts
	}
	for _, table := range []string{"bodies", "events", "jobs", "kinds", "names", "queues", "states", "workers"} {
		key := list(`SELECT name FROM pragma_table_info('` + table + `') WHERE pk = 1`)[0]
		for _, column := range list(`SELECT name FROM pragma_table_info('` + table + `')`) {
			for _, row := range list(`SELECT quote(` + key + `) FROM ` + table + ` ORDER BY 1`) {
				for _, value := range []string{`NULL`, `0`, `-1`, column + ` + 1`, column + ` || 'x'`, `''`, `x'00'`,
					`upper(` + column + `)`,
					`char(27) || '[31m'`, `(SELECT min(` + column + `) FROM ` + table + `)`,
					`(SELECT max(` + column + `) FROM ` + table + `)`} {
					all = append(all, edit{table, column, fmt.Sprintf(`UPDATE OR IGNORE %s SET %s = %s WHERE %s = %s`,
						table, column, value, key, row)})
				}
			}
		}
	}
	return all
}

// edited returns what Verify finds after an edit; changed is false if the file refuses the edit, or is
// unchanged.
func edited(t *testing.T, file []byte, e edit) (v audit.Verified, changed bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if !alterCell(t, path, e) {
		return v, false
	}
	s, err := ledger.OpenExisting(t.Context(), "sqlite:"+path+"?sync=normal")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v, err = audit.VerifyStore(t.Context(), s, 0, nil); err != nil {
		v.Findings = append(v.Findings, audit.Finding{Detail: err.Error()})
	}
	return v, true
}

// alterCell runs the statement of e without the guards, and reports whether it changed a value.
func alterCell(t *testing.T, path string, e edit) bool {
	t.Helper()
	db, err := sql.Open("sqlite", fileURL(path)+"&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	exec := func(statement string) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	}
	var drop, create []string
	rows, err := db.QueryContext(ctx, `SELECT 'DROP TRIGGER ' || name, sql FROM sqlite_schema
WHERE type = 'trigger' AND tbl_name = ?`, e.table)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var without, with string
		if err := rows.Scan(&without, &with); err != nil {
			t.Fatal(err)
		}
		drop, create = append(drop, without), append(create, with)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(drop, `CREATE TEMP TABLE before AS SELECT * FROM `+e.table) {
		if err := exec(s); err != nil {
			t.Fatal(err)
		}
	}
	refused := exec(e.statement)
	var differing int
	count := `SELECT count(*) FROM (SELECT * FROM ` + e.table + ` EXCEPT SELECT * FROM before)`
	if err := db.QueryRowContext(ctx, count).Scan(&differing); err != nil {
		t.Fatal(err)
	}
	for _, s := range create {
		if err := exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return refused == nil && differing > 0
}

// TestAttackCells edits one cell of a ledger's file, without its guards. Verify finds it, unless its column
// is one of those that operations.md lists.
func TestAttackCells(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../cmd/jobledger/docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range unsealed {
		if !strings.Contains(string(page), "`"+column+"`") {
			t.Errorf("operations.md does not name %s", column)
		}
	}
	file := recorded(t)
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	all := edits(t, path)
	dice := rand.New(rand.NewPCG(1, 5))
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := *cells
	if n == 0 {
		n = ledgertest.Size(30, 30, 1200)
	}
	whole := n < 0
	if !whole {
		all = all[:min(n, len(all))]
	}
	passed, found, without := make(map[string]int), 0, 0
	for _, e := range all {
		// the table itself refuses a type that the column cannot have
		v, changed := edited(t, file, e)
		column := e.table + "." + e.column
		switch {
		case !changed:
			without++
		case len(v.Findings) > 0:
			found++
		default:
			if passed[column]++; !slices.Contains(unsealed, column) {
				t.Errorf("verify finds nothing after %s", e.statement)
			}
		}
	}
	t.Logf("%d edits: %d found, %d changed nothing, and these passed: %v", len(all), found, without, passed)
	if found == 0 {
		t.Error("nothing was found")
	}
	if got := slices.Sorted(maps.Keys(passed)); whole && !slices.Equal(got, unsealed) {
		t.Errorf("edits pass in %v, and operations.md names %v", got, unsealed)
	}
}
