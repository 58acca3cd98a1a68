package postgres

import (
	"cmp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged limits how long sent data may remain unacknowledged, or unsent (tcp(7),
// TCP_USER_TIMEOUT).
func limitUnacknowledged(timeout time.Duration) func(network, address string, socket syscall.RawConn) error {
	return func(network, _ string, socket syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		refused := socket.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
		})
		return cmp.Or(refused, err)
	}
}
