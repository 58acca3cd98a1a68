// Package attempts lists claims from their beginning to their end: [List] selects them by worker, time,
// outcome or overlap, and [OwnerAt] finds the one that held a job at a moment. It reads events and the rows
// of jobs.
//
// Files in reading order: attempts.go, query.go (the SQL), owner.go.
package attempts
