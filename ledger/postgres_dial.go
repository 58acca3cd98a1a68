package ledger

import (
	"net"
	"time"
)

// silence is how long a server's host may leave unanswered what its kernel answers by itself, before the connection counts
// as lost. A host that has died and a firewall that has forgotten close nothing, and a writer would wait for a quarter of
// an hour until the kernel gives up.
var silence = 30 * time.Second

// dialer connects to a server.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 6, Count: 4}, // where nothing has been sent
		Control:         boundSilence(silence),                                                                 // where something has
	}
}
