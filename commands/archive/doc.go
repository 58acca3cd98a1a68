// Package archive copies old events of a ledger into segment files, which can be read without this program
// and are compared with the ledger's hash tree, and checks these files.
//
// [Close] closes the ledger's next range: it adds the blocks that are missing, writes the file, reads it
// back, compares every block with the ledger's, and records the event archived, which names the file by its
// SHA-256. Whenever it is interrupted, there is a complete file that an event names, a complete file that the
// next Close adopts, or none. The events stay in the ledger as well: nothing here removes any.
//
// [List] says where the files should be, [Check] reads them, and [History] finds the events of one job in
// them. [Reader] opens a copy that answers questions as if nothing had left.
//
// Files in reading order: close.go, record.go, contents.go, check.go, history.go,
// lines.go, remove.go, pace.go, keeper.go, reader.go.
//
// Held by TestCloseWritesEveryEventOnce, TestRemovalLosesNothing, TestCheckFindsEveryFault,
// TestCopyIsTheWholeLedger and TestReaderIsMovedForward.
package archive
