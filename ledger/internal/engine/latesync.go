package engine

// LateSyncer is an Engine whose Commit may leave it to Sync to make the transaction durable, so that a slow
// disk does not hold the write lock.
type LateSyncer interface {
	// Late reports whether Commit does.
	Late() bool
	// Sync makes durable what has been committed before it began, by whatever process. Safe for concurrent
	// use. After an error, what was committed since the last Sync without one may be lost in a power cut.
	Sync() error
}

// Lender is an Engine of a server, where a read may use the writer's session.
type Lender interface {
	// WriterSession returns the session of the last Begin, or one that Begin will use; nil: there is none. Only
	// the commit loop calls it, between two transactions.
	WriterSession() *Session
}

// Stiller is an Engine that may read without locks, on files that no process should write.
type Stiller interface {
	// Still returns ErrBusy where the files were written since the snapshot of s began.
	Still(s *Session) error
}
