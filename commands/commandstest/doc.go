// Package commandstest is for the tests of everything that uses package commands. It has a ledger with a
// clock that the test sets (Scenario), one whose jobs end in every way (ManyWays), and faults that a test can
// cause: commits that fail or lose their answer (Commits for SQLite, Cutter for PostgreSQL), and changes by
// others between a read and a write (BeforeWrite).
//
// For tests only. Held by TestBeforeWriteRunsBeforeWrite and TestUnknownCommitSentAgain of package
// commands. This package is not part of the Go API, and may change in any release.
package commandstest
