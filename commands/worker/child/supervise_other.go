//go:build unix && !linux

package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clock reads the monotonic clock.
func clock() instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return instant(ts.Nano())
}

// adoptOrphans is not supported: a process that leaves the command's group is not found.
func adoptOrphans() bool { return false }

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reapNext waits for the command, reaps it and kills the rest of its group.
func (s *supervisor) reapNext(pid int) (reaped int, status syscall.WaitStatus, used syscall.Rusage,
	err error) {
	for {
		reaped, err = syscall.Wait4(pid, &status, 0, &used)
		if err != syscall.EINTR {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reaped = true
	_ = unix.Kill(-pid, unix.SIGKILL)
	return reaped, status, used, err
}

func memoryFile([]byte) (*os.File, error) { return nil, errors.ErrUnsupported }

func killDescendants(int, int) (n int, stuck string) { return 0, "" }

func unsignallable(int) string { return "" }

// describe says which process this is, for people.
func describe(pid int) string { return fmt.Sprintf("pid %d belongs to another user", pid) }
