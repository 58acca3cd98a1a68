// Package oracletest answers questions about a ledger from the lines of its export, for tests that compare
// these answers with those of the program.
//
// It is naive on purpose: each answer goes through all events from the first one, with no index, no keyframe
// and no shortcut. It is written from what docs/kinds.md says of the events, and shares no code with what it
// is compared with; a test holds that it imports nothing of this module.
//
//	l, err := oracletest.Read(export)
//	rows := l.Waits(l.Between("pos:10", ""))
//
// A [Row] has the names and the values that the program prints with --json. A missing name is not compared.
//
// Files in reading order:
//
//   - ledger.go: [Ledger], [Event], [Moment], [Window]
//   - job.go: what the events of a job add up to
//   - jobs.go: questions about jobs at a moment
//   - claims.go: questions about claims
//   - queues.go, depth.go, causes.go: questions about queues
//   - workers.go: questions about worker processes
//   - night.go: questions about what happened within a window
//
// For tests only: TestAnswersAreThoseOfTheExport of the program asks it. Held by
// TestAnswersOracleSharesNoCode and TestAnswersCatchMutants of the program.
package oracletest
