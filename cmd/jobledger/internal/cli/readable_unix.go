//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// readable reports whether a read of f returns bytes at once.
func readable(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
}
