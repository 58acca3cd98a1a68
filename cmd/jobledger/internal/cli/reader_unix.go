//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReaderGone reports whether the reader of a pipe on stdout has closed it, without a write.
func ReaderGone() bool {
	fds := []unix.PollFd{{Fd: int32(os.Stdout.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0
}
