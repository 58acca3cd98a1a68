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
