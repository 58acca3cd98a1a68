//go:build unix

package web

import (
	"syscall"
	"time"
)

// processorTime returns the time of the processors that this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
