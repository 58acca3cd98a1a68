package schema_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"jobledger/ledger/ledgertest"
)

// tables are events and jobs in SQL.
var tables = regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE) (events|jobs)\b`)

// readsTables are the files outside of projection and ledger whose SQL reads or writes these tables, and how
// many of its texts do. A question about jobs has one maker, in projection. The list may only shrink.
var readsTables = map[string]int{
	"cmd/jobledger/internal/doctor/archive.go":    1,
	"cmd/jobledger/internal/report/attempts.go":   1,
	"cmd/jobledger/internal/report/queues.go":     1,
	"cmd/jobledger/internal/report/workers.go":    2,
	"cmd/jobledger/internal/web/history/codes.go": 1,
	"cmd/jobledger/internal/web/history/queue.go": 1,
	"commands/internal/burst/statement.go":        1,
}

// bareNumbers are kinds and states in SQL by number.
var bareNumbers = regexp.MustCompile(
	`\b(kind|state|from_state|to_state)\s*(<>|<=|>=|=|<|>|BETWEEN|IN \(|NOT IN \()\s*\d`)

// saysNumbers are the files whose SQL has kinds or states by number, and how many lines do. A number says
// nothing to a reader, and a list of numbers is forgotten where a kind is added. The list may only shrink.
var saysNumbers = map[string]int{
	"cmd/jobledger/internal/report/attempts.go":   1,
	"cmd/jobledger/internal/report/queues.go":     1,
	"cmd/jobledger/internal/web/history/codes.go": 2,
	"ledger/complete.go":                          1,
	"ledger/erase.go":                             1,
	"ledger/events.go":                            3,
	"ledger/remove.go":                            2,
	"projection/archive.go":                       4,
	"projection/attempts/gaps.go":                 1,
	"projection/attempts/query.go":                5,
	"projection/audit/differ/dependencies.go":     2,
	"projection/audit/differ/jobs.go":             1,
	"projection/audit/divergence.go":              2,
	"projection/audit/verify_rules.go":            1,
	"projection/defaults/defaults.go":             1,
	"projection/exits.go":                         1,
	"projection/follow/transitions.go":            3,
	"projection/get.go":                           1,
	"projection/hosts.go":                         1,
	"projection/identity.go":                      1,
	"projection/keyframe/frame.go":                2,
	"projection/keyframe/store.go":                1,
	"projection/list.go":                          1,
	"projection/lost_claims.go":                   4,
	"projection/open_asof.go":                     2,
	"projection/past/past.go":                     4,
	"projection/rebuild/rebuild.go":               2,
	"projection/schedules/table.go":               1,
	"projection/sealing.go":                       1,
	"projection/status/counts.go":                 1,
	"projection/status/queues.go":                 1,
	"projection/status/service.go":                2,
	"projection/status/signs.go":                  6,
	"projection/query/silent.go":                  1,
	"projection/status/waits.go":                  1,
	"projection/status/workers.go":                1,
}

func TestSQLOverEventsAndJobsIsInProjection(t *testing.T) {
	t.Parallel()
	found := make(map[string]int)
	eachText(t, func(file, text string) {
		allowed := strings.HasPrefix(file, "projection/") || strings.HasPrefix(file, "ledger/")
		if !allowed && tables.MatchString(text) {
			found[file]++
		}
	})
	onlyShrinks(t, true, found, readsTables, "texts of SQL over events or jobs")
}

func TestSQLHasKindsByName(t *testing.T) {
	t.Parallel()
	found := make(map[string]int)
	eachText(t, func(file, text string) {
		for line := range strings.Lines(text) {
			if bareNumbers.MatchString(line) {
				found[file]++
			}
		}
	})
	onlyShrinks(t, strict(), found, saysNumbers, "lines of SQL with a kind or a state by number")
}

// strict reports whether this is the run that decides: with -long, or in CI.
func strict() bool { return ledgertest.Long() || os.Getenv("CI") == "true" }

// onlyShrinks compares what was found in files with what is known. More than that fails where more says so,
// and less in a strict run: the list is to be lowered then.
func onlyShrinks(t *testing.T, more bool, found, known map[string]int, what string) {
	t.Helper()
	report := func(fails bool, format string, args ...any) {
		t.Helper()
		if fails {
			t.Errorf(format, args...)
			return
		}
		t.Logf(format, args...)
	}
	for file, n := range found {
		if n > known[file] {
			report(more, "%s: %d %s, and at most %d are allowed", file, n, what, known[file])
		}
	}
	for file, n := range known {
		if n > found[file] {
			report(strict(), "%s: %d %s, and the list says %d: lower it", file, found[file], what, n)
		}
	}
}

// A rule of percentiles next to the first one would give other numbers.
func TestPercentileHasOneRule(t *testing.T) {
	t.Parallel()
	var found []string
	eachSource(t, func(file string, parsed *ast.File) {
		for _, d := range parsed.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if isFunc && strings.Contains(strings.ToLower(f.Name.Name), "percentile") {
				found = append(found, file)
			}
		}
	})
	if len(found) != 1 || found[0] != "projection/query/percentile.go" {
		t.Errorf("percentiles are made in %q, want projection/query/percentile.go only", found)
	}
}

// eachText calls fn for each text in the product's code; those that are added up with + are apart.
func eachText(t *testing.T, fn func(file, text string)) {
	t.Helper()
	eachSource(t, func(file string, parsed *ast.File) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				fn(file, value)
			}
			return true
		})
	})
}

// eachSource calls fn for each file of the product: no tests, and no packages for tests.
func eachSource(t *testing.T, fn func(file string, parsed *ast.File)) {
	t.Helper()
	const root = ".."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root &&
			(name == "testdata" || strings.HasSuffix(name, "test") || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		fn(filepath.ToSlash(file), parsed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
