// Package operate has the verbs with which an operator changes jobs and queues.
//
//   - cancel.go, retry.go, reschedule.go, erase.go: jobs; bulk.go: many jobs, by a filter
//   - pause.go, limit.go, queue.go: queues
//   - inbox.go: [Verbs.Inbox], rows that ask for jobs
//   - sweep.go: [Verbs.Sweep], takes back lost claims
//
// Held by TestScripts/retry, TestScripts/bulk, TestScripts/limit and TestScripts/pause of the program.
package operate

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
