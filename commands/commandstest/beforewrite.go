package commandstest

import (
	"context"
	"runtime"
	"strings"
)

// BeforeWrite is a context that calls Act when a Store is about to queue a write, with no lock held: Act can
// change what the caller has read, before the caller writes.
type BeforeWrite struct {
	context.Context
	Act func()
}

// Err is called by the store before it queues a write.
func (c BeforeWrite) Err() error {
	pc := make([]uintptr, 1)
	runtime.Callers(2, pc)
	if frame, _ := runtime.CallersFrames(pc).Next(); strings.HasSuffix(frame.Function, "ledger.(*Store).write") {
		c.Act()
	}
	return c.Context.Err()
}
