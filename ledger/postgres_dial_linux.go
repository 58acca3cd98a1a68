package ledger

import (
	"cmp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundSilence bounds how long what was sent may remain unacknowledged, or cannot be sent (tcp(7), TCP_USER_TIMEOUT).
func boundSilence(silence time.Duration) func(network, address string, socket syscall.RawConn) error {
	return func(network, _ string, socket syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		refused := socket.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
		})
		return cmp.Or(refused, err)
	}
}
