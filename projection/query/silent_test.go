package query

import (
	"testing"

	"jobledger/ledger/ledgertest"
)

// TestSilentPlan: what silent workers lost is found by an index, not among all events.
func TestSilentPlan(t *testing.T) {
	ledgertest.OfSQLite(t)
	ledgertest.WantPlan(t, ledgertest.Open(t), takenAfter, "e USING INDEX lost_claims (at>?)")
}
