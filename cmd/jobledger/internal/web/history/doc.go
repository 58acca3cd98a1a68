// Package history reads what happened within a [Span] of a ledger, for pictures and tables.
//
// Files in reading order: lanes.go, lane_bars.go, lane_marks.go (who had which job), findings.go (what went
// wrong, in words), failures.go, codes.go (what failed), series.go, depth.go, transitions.go (a queue over
// time), queue.go (what was done to a queue, and its next job).
package history
