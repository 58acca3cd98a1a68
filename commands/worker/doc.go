// Package worker is the runtime that does the work: it claims jobs into free slots, keeps their leases alive,
// runs a Handler or a Command for each, and records how each ended.
//
// One goroutine does all of a worker's writing, so that a heartbeat never races the end of the same job, and
// so that the jobs that ended, the beats that are due and the next claims share one transaction.
package worker
