// Package commandstest is for the tests of everything that uses package commands: a ledger with a clock that
// the test moves (Scenario), and faults that a test can cause: commits that fail or lose their answer
// (Commits for SQLite, Cutter for PostgreSQL), and a step of others between what a caller has read and what
// it writes (BeforeWrite).
package commandstest
