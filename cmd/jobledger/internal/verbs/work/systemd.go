package work

import (
	"net"
	"os"
	"strconv"
	"time"
)

// notifier returns a function that sends the service's state to systemd, as sd_notify(3) does: one
// datagram to the socket named by NOTIFY_SOCKET. Without that variable it does nothing; an error is passed
// to warn. The variable is removed from the environment, so that commands of jobs cannot notify in the
// service's name.
func notifier(warn func(error)) func(state string) {
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
			warn(err)
		}
	}
}

// watchdog returns a function to be called again and again while the service works as it should. It
// reports that to systemd four times in the service's WatchdogSec, which is to be a minute or more. Without
// that it returns nil. Its variables, too, are removed from the environment.
func watchdog(notify func(state string)) func() {
	limit, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	process := os.Getenv("WATCHDOG_PID")
	_, _ = os.Unsetenv("WATCHDOG_USEC"), os.Unsetenv("WATCHDOG_PID") // these fail for no name that is one
	if err != nil || limit <= 0 || process != "" && process != strconv.Itoa(os.Getpid()) {
		return nil
	}
	every := time.Duration(limit) * time.Microsecond / 4
	var last time.Time
	return func() {
		if now := time.Now(); now.Sub(last) >= every {
			last = now
			notify("WATCHDOG=1")
		}
	}
}
