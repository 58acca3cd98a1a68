package commandstest

import (
	"context"
	"runtime"
	"strings"
)

// BeforeWrite is a context that calls act when a Store is about to queue a write, with no lock held: others
// may act between what its caller has read and what it writes.
type BeforeWrite struct {
	context.Context
	Act func()
}

// Err is asked for by the store first of all when it queues a write.
func (c BeforeWrite) Err() error {
	pc := make([]uintptr, 1)
	runtime.Callers(2, pc)
	if frame, _ := runtime.CallersFrames(pc).Next(); strings.HasSuffix(frame.Function, "ledger.(*Store).write") {
		c.Act()
	}
	return c.Context.Err()
}
