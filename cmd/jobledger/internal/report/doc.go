// Package report answers the questions of a bad night from the events of a window: which jobs were taken
// from a worker, which workers went silent, how deep the queues were.
//
// Each report is a function of a snapshot and a [Window]. It returns typed rows and asks no clock:
//
//	rows, err := report.Failures(ctx, tx, report.Window{After: 4710, Until: 5200})
//
// [All] lists the reports for a program that shows any of them: its rows are the same ones, as [Row].
//
// A report reads the events of its window by their position, and of the rest of the ledger only what the
// jobs and workers in it lead to. [Depth] also counts the jobs at the beginning of the window.
//
// Files in reading order:
//
//   - report.go: [Window], [Row] and [All]
//   - workers.go: [Taken], [Silent], [Poison]
//   - queues.go: [Depth], [Waits], [Backlog]
//   - attempts.go: [Failures], [Longest]
//   - print.go: rows of any report as a table, as CSV and as JSON
package report
