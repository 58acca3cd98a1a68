package attempts

import (
	"testing"

	"jobledger/ledger/ledgertest"
)

// TestAttemptsPlans: the claims of jobs held at a moment, and overlapping claims, are found by jobs, and so
// are the events before heartbeats.
func TestAttemptsPlans(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := ledgertest.Open(t)
	for _, f := range []Filter{{}, {Worker: "w"}, {Queue: "mail"}, {Overlap: true}} {
		query, _ := f.heldBy(make([]any, 64))
		ledgertest.WantPlan(t, s, query, "c USING INDEX sqlite_autoindex_events_1 (job=? AND seq>?)")
	}
	query, _ := Filter{Overlap: true, Worker: "w"}.begunAfterFrom(0, 9)
	ledgertest.WantPlan(t, s, query+` ORDER BY c.pos LIMIT 512`,
		"events USING INDEX rare_events (kind=? AND rowid>? AND rowid<?)",
		"c USING INDEX sqlite_autoindex_events_1 (job=?")
	ledgertest.WantPlan(t, s, gapsBetween, "e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		"p USING INDEX sqlite_autoindex_events_1 (job=? AND seq=?)")
	ledgertest.WantPlan(t, s, gapsOf, "e USING INDEX sqlite_autoindex_events_1 (job=? AND seq>?)",
		"p USING INDEX sqlite_autoindex_events_1 (job=? AND seq=?)")
}
