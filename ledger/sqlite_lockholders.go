package ledger

// Holder is a process that has a ledger open, as far as the system tells.
type Holder struct {
	PID     int
	Program string // the name of its program; "" where it is not known
	Stopped bool   // by a signal: it goes on when it is told to
	Reads   bool   // in the middle of a read, or of a write
	Writes  bool   // it holds the write lock
	Turn    bool   // it holds the turn for which other writers wait
}
