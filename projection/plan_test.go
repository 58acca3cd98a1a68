package projection_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/internal/historytest"
)

// TestStatementsUseIndexes checks SQLite's query plan of each statement, as it is sent.
func TestStatementsUseIndexes(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := ledgertest.Open(t)
	check := func(what, statement, index string, excused ...string) {
		t.Helper()
		ledgertest.CheckPlan(t, s, what, statement, index, excused...)
	}
	// all transitions: their compare-and-swaps are among the statements now
	historytest.Record(t, s, historytest.Read(t, "v1.jsonl"))
	want := map[string]string{
		"get":         "j USING INDEX sqlite_autoindex_jobs_1 (id=?)",
		"get by key":  "j USING INDEX keys (queue=? AND key=?)",
		"last exits":  "e USING INTEGER PRIMARY KEY (rowid=?)",
		"newest":      "j USING INTEGER PRIMARY KEY (rowid<?)",
		"held":        "j USING INDEX leases (lease_expires_at>?)",
		"expired":     "j USING INDEX leases (lease_expires_at<?)",
		"result":      "e USING COVERING INDEX sqlite_autoindex_events_1 (job=? AND seq=?)",
		"lost claims": "e USING INDEX lost_claims (at>? AND at<?)",
		"lost claim":  "e USING INDEX sqlite_autoindex_events_1 (job=?)",
		"surviving":   "s USING INDEX rare_events (kind=? AND rowid<?)",
	}
	statements := projection.Statements()
	puts := 0
	for what, statement := range statements {
		switch index, known := want[what]; {
		case what == "surviving": // there are few
			check(what, statement, index, "USE TEMP B-TREE FOR ORDER BY")
		case known:
			check(what, statement, index)
		case strings.HasPrefix(what, "put"):
			puts++
			check(what, statement, "jobs USING INTEGER PRIMARY KEY (rowid=?)")
		default:
			t.Errorf("%s: say what it should use", what)
		}
		delete(want, what)
	}
	if len(want) > 0 || puts < 2*10 {
		t.Errorf("not seen: %v; %d compare-and-swaps", want, puts)
	}

	// List of the jobs enqueued in a window, and of those with an exit code; package projection generates this
	// text.
	check("list window", `SELECT j.id FROM jobs j WHERE `+projection.ExitIs+
		` AND j.n > ? AND j.n <= ? ORDER BY j.n DESC LIMIT ?`, "j USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")
	check("list host", `SELECT j.id FROM jobs j WHERE `+projection.HostIs+
		` AND j.n > ? ORDER BY j.n DESC`,
		"j USING INTEGER PRIMARY KEY (rowid>?)", "e USING INDEX sqlite_autoindex_events_1 (job=? AND seq>?)",
		"SCAN workers")
	check("by any key", projection.ByAnyKey, "j USING INDEX keys (queue=? AND key=?)", "SCAN q",
		"USE TEMP B-TREE FOR ORDER BY") // of the queues that have the key

	// What the paths of a claim read in the ledger: every SELECT in these functions and variables of package
	// ledger, and of its sessions.
	for function, index := range map[string]string{
		"Tail":          "", // the end of the primary key
		"Body":          "bodies USING INTEGER PRIMARY KEY (rowid=?)",
		"latestClaimOf": "x USING INDEX sqlite_autoindex_events_1 (job=? AND seq>?)",
		"lastOf":        "events USING COVERING INDEX rare_events (kind=?)",
		"Name":          "names USING COVERING INDEX sqlite_autoindex_names_1 (name=?)",
		"NameOf":        "names USING INTEGER PRIMARY KEY (rowid=?)",
		"Worker": "workers USING COVERING INDEX sqlite_autoindex_workers_1 (worker=? AND boot=? AND " +
			"host=? AND pid=? AND version=?)",
		"WorkerOf": "workers USING INTEGER PRIMARY KEY (rowid=?)",
	} {
		found := slices.Concat(selectsIn(t, "../ledger", function),
			selectsIn(t, "../ledger/internal/session", function),
			selectsIn(t, "../ledger/internal/engine", function))
		if len(found) == 0 {
			t.Errorf("ledger.%s sends no SELECT any more", function)
		}
		for _, statement := range found {
			check("ledger: "+function, statement, index, map[string]string{"Tail": "SCAN events"}[function])
		}
	}
	lives := selectsIn(t, "status", "lives")
	if len(lives) != 1 {
		t.Fatalf("status.lives has %d SELECTs, want 1", len(lives))
	}
	check("lives", lives[0], "e USING INDEX sqlite_autoindex_events_1 (job=? AND seq=?)")
	// What happened to a token: the events of one job, sorted by pos because refused ones have no seq.
	// ledger.Filter generates the same text; compare it by eye.
	check("past",
		`SELECT e.pos, e.data FROM events e WHERE e.job = ? AND e.kind IN (?,?,?,?,?,?,?) ORDER BY e.pos`,
		"e USING INDEX sqlite_autoindex_events_1 (job=?)", "USE TEMP B-TREE FOR ORDER BY")
	check("rare events",
		`SELECT e.pos, e.data FROM events e WHERE e.kind IN (?) AND e.kind > 5 AND e.pos > ? ORDER BY e.pos`,
		"e USING INDEX rare_events (kind=? AND rowid>?)")
	check("tail", `SELECT e.pos, e.data FROM events e WHERE e.pos > ? ORDER BY e.pos LIMIT ?`,
		"e USING INTEGER PRIMARY KEY (rowid>?)")
}

// selectsIn returns the string literals in a function or variable that begin with SELECT.
func selectsIn(t *testing.T, folder, name string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		within := func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && strings.HasPrefix(text, "SELECT") {
					found = append(found, event.SQL(text))
				}
			}
			return true
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
				ast.Inspect(f, within)
			} else if !ok {
				ast.Inspect(d, func(n ast.Node) bool {
					v, ok := n.(*ast.ValueSpec)
					if ok && v.Names[0].Name == name {
						ast.Inspect(v, within)
					}
					return !ok
				})
			}
		}
	}
	return found
}
