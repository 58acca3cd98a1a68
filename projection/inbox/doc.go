// Package inbox reads and removes the rows by which programs ask for jobs within transactions of their own,
// in the database of the ledger: those that wait, and those that were refused. What such a row means is known
// to package commands, which moves them; a program writes them with package commands/inbox. The rows are not
// part of the ledger's evidence, and no event speaks of them.
//
// Files: waiting.go, refused.go. Held by TestInboxMovesCommittedRowsInOrder and TestInboxRefused of package
// commands/inbox. This package is not part of the Go API, and may change in any release.
package inbox
