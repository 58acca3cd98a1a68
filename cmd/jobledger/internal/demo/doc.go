// Package demo shows on real files and real processes that jobs survive a killed worker. [Run] makes a ledger
// with one job per file of a folder, starts two worker processes that compute SHA-256 sums, kills one of them
// with SIGKILL while it holds a job, waits until all jobs have succeeded, and checks the sums.
//
// The workers are the program itself, started as "jobledger work". If there is no sha256sum, their command is
// this program with [SumWord] as its only argument; the program must then call [Sum].
//
// Files in reading order:
//
//   - demo.go: [Run]
//   - place.go: the ledger of an earlier demo
//   - workers.go: the two processes
//
// Held by TestScripts/demo, TestRunRefusesAnEmptyFolderAndAnEarlierLedger and TestDemoOnPostgres of the
// program.
package demo
