// Package schedule enqueues jobs at set times. A [Keeper] sets, pauses and removes schedules; a [Ticker]
// enqueues the jobs that are due.
//
// No process leads. Every worker and every sweeper looks. The one that gets the write lock while the next
// tick of a schedule is still as it was read records what comes of it, and the tick after that, in one
// transaction. So each tick makes one job or is recorded as skipped, once, however many processes look.
//
// The files: spec.go checks what a schedule may be, plan.go decides what comes of the ticks that are due, and
// both are pure; keeper.go and ticker.go carry it out.
package schedule
