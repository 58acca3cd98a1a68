// Package writequeue is the order in which processes get the write lock of a ledger in SQLite.
//
// Polling for SQLite's write lock is unfair: the last holder usually wins it back. So processes that compete
// for it queue up: each locks the file "gate", then the file "lock", unlocks "gate", and keeps "lock" until
// its transaction has ended. One process waits between the two and the others wait before the gate; the
// kernel admits them in the order in which they came. The files are in the folder of the doorbell.
//
// Only fairness depends on the queue: SQLite's own lock decides, and a process without competition never
// touches these files.
//
// Held by TestWriteQueueIsFairBetweenProcesses, TestWriteQueueSurvivesStoppedHolder and
// TestWriteQueueIsNotMadeForOneWriter of package ledger, and by TestKilledInWriteQueue of the program.
package writequeue
