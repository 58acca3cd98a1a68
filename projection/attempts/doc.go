// Package attempts lists claims from their beginning to their end: [List] selects them by worker, time,
// outcome or overlap, [OwnerAt] finds the one that held a job at a moment, and [HeartbeatGaps] says how long
// the gaps between their heartbeats were. It reads events and the rows of jobs.
//
// Files in reading order: attempts.go, query.go (the SQL), owner.go, gaps.go.
//
// Held by TestListLast and TestHeartbeatGaps here, by TestAttemptsAsOf of package projection/query, and by
// TestAttemptsMatchClaimEvents of the program. This package is not part of the Go API, and may change in
// any release.
package attempts
