//go:build unix

package child

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// spend adds what a child used that has been reaped. The system counts the memory of a process from the peak
// of the one that forked it, so a value up to least means nothing.
func (s *supervisor) spend(used syscall.Rusage, least int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost.CPUUser += time.Duration(used.Utime.Nano())
	s.cost.CPUSystem += time.Duration(used.Stime.Nano())
	if rss := peakOf(used); rss > least {
		s.cost.MaxRSS = max(s.cost.MaxRSS, rss)
	}
}

// spent is what the children used that have been reaped.
func (s *supervisor) spent() Cost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cost
}

// peakOf is the most memory in bytes that a process had.
func peakOf(used syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(used.Maxrss)
	}
	return int64(used.Maxrss) << 10
}

// leastRSS is the peak memory of this process up to now, without that of processes that forked it. Without
// /proc it is that of either.
func leastRSS() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	if fields := bytes.Fields(peak); len(fields) > 1 {
		if kib, err := strconv.ParseInt(string(fields[0]), 10, 64); err == nil {
			return kib << 10
		}
	}
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	return peakOf(own)
}
