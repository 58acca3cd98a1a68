// Package verdict says whether all is well in a ledger at a moment, and what is not. Its rules are pure, and
// the only ones: the commands status and doctor, pages and metrics put what [Facts.Judge] returns into words
// and numbers. Package query reads the facts.
//
//	found := verdict.Facts{At: now, Queues: queues, Workers: workers, Recent: recent}.Judge()
//
// Files in reading order: recent.go and read.go (what each queue did, in spans of time), problem.go (what is
// found), rules.go (how things stand), failing.go and behind.go (what queues did).
//
// Rules that cry wolf are worse than none. So a share of failures counts only where chance does not explain
// it, waits are compared with what is normal for the queue, and what heals is a note.
//
// Held by TestCalmNightsHaveNoLine and TestIncidentsAreNamed here, and by TestBadNightIsNamed of package
// query.
//
// This package is not part of the Go API, and may change in any release.
package verdict
