package door

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peersKnown says that the system names the user at the other end of a Unix socket.
const peersKnown = true

// peerUID returns the user id of the process at the other end.
func peerUID(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("peer of a socket: %w", err)
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	switch {
	case controlErr != nil:
		return 0, fmt.Errorf("peer of a socket: %w", controlErr)
	case err != nil:
		return 0, fmt.Errorf("peer of a socket: %w", err)
	}
	return int(credentials.Uid), nil
}
