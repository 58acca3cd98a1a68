package claims_test

import (
	"testing"

	"jobledger/ledger/ledgertest"
	"jobledger/projection/claims"
)

// TestStatementsUseIndexes checks SQLite's query plan of each statement of a claim, as it is sent.
func TestStatementsUseIndexes(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := ledgertest.Open(t)
	want := map[string]string{
		"lanes": "jobs USING COVERING INDEX ready (lane>? AND lane<?)",
		"heads": "j USING INDEX ready (lane=? AND (run_at,id)>(?,?) AND run_at<?)",
		"rest":  "j USING INDEX ready (lane=? AND (run_at,id)>(?,?) AND run_at<?)",
		"since": "e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
	}
	for what, statement := range claims.Statements() {
		if want[what] == "" {
			t.Errorf("%s: say what it should use", what)
		}
		ledgertest.CheckPlan(t, s, what, statement, want[what])
		delete(want, what)
	}
	if len(want) > 0 {
		t.Errorf("not seen: %v", want)
	}
}
