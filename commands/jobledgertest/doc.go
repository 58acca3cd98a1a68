// Package jobledgertest helps programs that embed jobledger to test their handlers: a ledger in a temporary
// folder, a clock that the test sets, jobs that run at once, and checks of what the ledger says after that.
//
//	func TestShip(t *testing.T) {
//		l := jobledgertest.New(t)
//		job := l.Run(shipHandler, commands.Enqueue{Queue: "ship", Payload: []byte(`{"number":17}`)})
//		l.RequireSucceeded(job.ID)
//		l.Golden(job.ID, "testdata/ship.golden")
//	}
//
// The ledger is that of production, with all of its rules; only the clock, and what is drawn at random, are
// the test's. So a test gives the same history each time. When the test ends, the ledger is verified and
// removed.
//
// A failed check ends the test, with the history of the job. Methods are called from the goroutine of the
// test, except those of the embedded Service and of [Clock], which are safe for concurrent use.
//
//   - ledger.go: [Ledger], [New] and [Open]; clock.go: [Clock]
//   - run.go: [Ledger.Run], [Ledger.Drain] and [Ledger.RunToEnd]
//   - require.go: what must be so; history.go: [Ledger.History] and [Ledger.Golden]
//
// Held by TestLedgerRunsToEnd, TestLedgerRunsOneJob and TestChecksEndTheTest.
package jobledgertest
