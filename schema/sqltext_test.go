package schema_test

import (
	"go/ast"
	"go/token"
	"os"
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
	"cmd/jobledger/internal/doctor/archive.go": 1,
	"commands/internal/burst/statement.go":     1,
}

// bareNumbers are kinds and states in SQL by number. Zero is not a state.
var bareNumbers = regexp.MustCompile(
	`\b(kind|state|from_state|to_state)\s*(<>|<=|>=|=|<|>|BETWEEN|IN \(|NOT IN \()\s*[1-9]`)

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

// A number says nothing to a reader, and a list of numbers is forgotten where a kind is added.
func TestSQLHasKindsByName(t *testing.T) {
	t.Parallel()
	eachText(t, func(file, text string) {
		for line := range strings.Lines(text) {
			if bareNumbers.MatchString(line) {
				t.Errorf("%s: a kind or a state by number, in place of its name in event.SQL: %s", file, line)
			}
		}
	})
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
	for _, s := range sources(t) {
		if !s.forTests() {
			fn(s.file, s.parsed)
		}
	}
}
