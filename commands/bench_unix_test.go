//go:build unix

package commands_test

import (
	"syscall"
	"testing"
)

// processorTime returns the time of the processors that this process has used so far, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// reportProcessor adds the processor time of an operation since before, which says more than the time by the
// clock where other programs run too.
func reportProcessor(b *testing.B, before int64) {
	b.Helper()
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}
