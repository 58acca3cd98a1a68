package ledger

import (
	"bytes"
	"runtime"
	"strconv"
	"time"
)

// A function of Write that calls Write of the same Store would wait for itself for ever, because one
// goroutine runs all functions. Asking which goroutine calls costs more than a write does, so that is asked
// only where the same function has been running for as long as nestedAfter.

// nestedAfter is how long a write waits for a running function before it asks whether it was called by that.
const nestedAfter = time.Millisecond

// calledWithin reports whether this goroutine runs a function of Write, which was running when functions was
// read.
func (s *Store) calledWithin(functions int64) bool {
	return s.functions.Load() == functions && s.loopID.Load() == goroutineID()
}

// goroutineID returns the number of this goroutine, which the runtime shows nowhere else.
func goroutineID() int64 {
	var text [64]byte
	rest := bytes.TrimPrefix(text[:runtime.Stack(text[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	id, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return -1
	}
	return id
}
