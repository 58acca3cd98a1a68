package cli

import (
	"net"
	"os"
)

// SystemdNotifier returns what tells the service manager that started this process how it stands, as sd_notify(3) says it:
// one datagram to the socket that the environment names. Without one it does nothing. The name is taken out of the
// environment, so that no command of ours speaks for the service.
func (p *Program) SystemdNotifier() func(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET") // fails for no name that is one
	return func(state string) {
		if path == "" {
			return
		}
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@" begins an abstract name here too
		if err == nil {
			_, err = conn.Write([]byte(state))
			_ = conn.Close()
		}
		if err != nil {
			p.Message("NOTIFY_SOCKET: %v", err)
		}
	}
}
