package keyframe

import (
	"testing"

	"jobledger/ledger/ledgertest"
)

// TestKeyframePlans: a keyframe is found by its position, and the events after it by theirs.
func TestKeyframePlans(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := ledgertest.Open(t)
	ledgertest.WantPlan(t, s, transitions, "e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		"q USING INTEGER PRIMARY KEY (rowid=?)")
	ledgertest.WantPlan(t, s, upTo, "k USING INTEGER PRIMARY KEY (rowid<?)")
	ledgertest.WantPlan(t, s, after, "k USING INTEGER PRIMARY KEY (rowid>?)")
}
