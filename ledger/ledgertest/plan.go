package ledgertest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/ledger"
)

// Plan returns the lines of SQLite's EXPLAIN QUERY PLAN for a statement, whose arguments are null.
func Plan(t testing.TB, s *ledger.Store, statement string) (lines []string) {
	t.Helper()
	args := strings.Count(statement, "?")
	if numbered := regexp.MustCompile(`\?(\d+)`).FindAllStringSubmatch(statement, -1); numbered != nil {
		args = 0
		for _, m := range numbered {
			n, _ := strconv.Atoi(m[1])
			args = max(args, n)
		}
	}
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		rows, err := tx.Query(t.Context(), `EXPLAIN QUERY PLAN `+statement, make([]any, args)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var line string
			if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
				return err
			}
			lines = append(lines, line)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return lines
}

// WantPlan fails unless the plan of a statement has all of these searches and scans no table.
func WantPlan(t testing.TB, s *ledger.Store, statement string, searches ...string) {
	t.Helper()
	lines := Plan(t, s, statement)
	for _, want := range searches {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "SEARCH "+want) }) {
			t.Errorf("nothing searches %s in %q\n%s", want, lines, statement)
		}
	}
	for _, line := range lines {
		of := strings.Fields(line)
		if of[0] == "SCAN" && slices.Contains([]string{"events", "jobs", "c", "e", "j", "q", "z", "h"}, of[1]) {
			t.Errorf("%s\n%s", line, statement)
		}
	}
}

// harmless are scans that read no table.
var harmless = []string{"SCAN CONSTANT ROW", "SCAN live", "SCAN v", "SCAN 64-ROW VALUES CLAUSE"}

// CheckPlan fails for every table scan and every sort of a statement that is not excused, and if nothing
// searches index.
func CheckPlan(t testing.TB, s *ledger.Store, what, statement, index string, excused ...string) {
	t.Helper()
	lines := Plan(t, s, statement)
	found := false
	for _, line := range lines {
		bad := strings.HasPrefix(line, "SCAN") || strings.Contains(line, "TEMP B-TREE") ||
			strings.Contains(line, "AUTOMATIC")
		if bad && !slices.Contains(harmless, line) && !slices.Contains(excused, line) {
			t.Errorf("%s: %s\n%.300s", what, line, statement)
		}
		found = found || strings.HasPrefix(line, "SEARCH") && strings.Contains(line, index)
	}
	if index != "" && !found {
		t.Errorf("%s: nothing searches %s in %q\n%.300s", what, index, lines, statement)
	}
}
