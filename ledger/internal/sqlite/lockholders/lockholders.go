// Package lockholders finds the processes that have an SQLite ledger open, and the locks that they hold. On
// systems other than Linux it finds none:
//
//	for _, h := range lockholders.List(path) {
//		fmt.Println(h.PID, h.Program, h.Writes)
//	}
//
// Held by TestLockHoldersOfOpenLedger and TestLockHoldersParseProcLocks of package ledger.
package lockholders

// Holder is a process that has a ledger open, as far as the system reports it.
type Holder struct {
	PID     int
	Program string // the name of its program; "" where it is not known
	Stopped bool   // by a signal, until another signal continues it
	Reads   bool   // it is in a read or a write transaction
	Writes  bool   // it holds the write lock
	InQueue bool   // it holds the lock of the write queue
}
