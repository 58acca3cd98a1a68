package main

import (
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// TestSchedulesInBrowser opens the pages of schedules in Chromium, as TestPagesInBrowser does others.
func TestSchedulesInBrowser(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := ticking(t, 61)
	n := serveStore(t, s.Store, func() time.Time { return s.Now })
	browse(t, browserTask{Link: <-n.links, Pages: []string{"/schedules", "/schedules/poll-orders",
		"/schedules/weekly?act=resume", "/schedules/digest?at=pos:60", "/schedules?at=pos:60", "/new/schedule",
		"/schedules/digest/edit"}})
}
