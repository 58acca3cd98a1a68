// Package intake is how a job stands in a row of a table, as the inbox of a ledger and an outbox have it, and
// how the rows of the inbox become jobs. What the rules of enqueuing are is for its caller to say, which is
// package commands.
//
// The row leaves the inbox and its job comes into the ledger in one transaction. So a row becomes one job,
// whatever is killed meanwhile, and no row has to be recognized that was moved before. A row that is refused
// goes to the table inbox_refused, with the reason, in the same way.
//
// Files in reading order: row.go (a job as a row), move.go (from the inbox into the ledger).
//
// Held by TestInboxMovesCommittedRowsInOrder, TestInboxRefused and TestKilledInbox of package commands/inbox.
package intake
