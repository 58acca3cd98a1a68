package cli

import (
	"net"
	"os"
)

// SystemdNotifier returns a function that sends the service's state to systemd, as sd_notify(3) does: one
// datagram to the socket named by NOTIFY_SOCKET. Without that variable it does nothing. The variable is
// removed from the environment, so that commands of jobs cannot notify in the service's name.
func (p *Program) SystemdNotifier() func(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET") // fails for no name that is one
	return func(state string) {
		if path == "" {
			return
		}
		// "@" begins an abstract name here too
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
		if err == nil {
			_, err = conn.Write([]byte(state))
			_ = conn.Close()
		}
		if err != nil {
			p.Message("NOTIFY_SOCKET: %v", err)
		}
	}
}
