//go:build unix

package meter

import (
	"syscall"
	"time"
)

// ProcessorTime returns the time of the processors that this process has used so far.
func ProcessorTime() (used time.Duration, known bool) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err == nil
}
