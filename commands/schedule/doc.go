// Package schedule enqueues jobs at set times. A program says which at its start, with [Set]:
//
//	_, err := schedule.Set(ctx, service, "web",
//		schedule.Spec{Name: "digest", Queue: "mail", Cron: "30 7 * * mon-fri", Zone: "Europe/Berlin"},
//		schedule.Spec{Name: "poll", Queue: "poll", Every: 5 * time.Minute})
//
// The schedules are in the ledger, and each worker.Worker enqueues the jobs that are due. A [Keeper] also
// pauses and removes schedules; a [Ticker] enqueues the jobs in a program that has no worker.
//
// No process leads. Every worker and every sweeper looks. The one that gets the write lock while the next
// tick of a schedule is still as it was read records what comes of it, and the tick after that, in one
// transaction. So each tick makes one job or is recorded as skipped, once, however many processes look.
//
// The files: spec.go checks what a schedule may be, plan.go decides what comes of the ticks that are due, and
// both are pure; keeper.go and ticker.go carry it out.
//
// Held by TestTickerCatchesUp, TestTickerOverlap, TestTickersOnJumpingClocks and
// TestTickerWaitsUnderAnyCommands.
package schedule
