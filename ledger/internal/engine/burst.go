package engine

import "time"

// Burster is an Engine that can carry out a whole transaction in one round trip: see Burst.
type Burster interface {
	// Burst runs b under the write lock, on the session of the last Begin, and returns the rows of its queries.
	// It ends the transaction in any case. ErrRetry: nothing of it is durable, because a statement failed; Begin
	// may report why. ErrBusy: there was no lock within wait, and nothing is durable. ErrUnknown: the
	// connection was lost before the outcome was known, or after the commit.
	Burst(b Burst, wait time.Duration) ([]Answer, error)
}

// Burst is a transaction that is sent as a whole, so that the lock never waits for the client. Nothing can be
// decided on the way: a statement that must not go on fails, and with it everything.
type Burst struct {
	Within []WarmupQuery // in the transaction; one of them fails unless MayWrite is true
	After  []WarmupQuery // after its commit
}

// MayWrite stands for a condition in a query of a Burst, which the engine puts in its place: that a function
// of Write could write now, too.
const MayWrite = "{mayWrite}"
