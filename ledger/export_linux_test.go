package ledger

import "jobledger/ledger/internal/sqlite"

// NetworkName returns the name of the network file system with a magic number.
var (
	NetworkName       = sqlite.NetworkName
	NetworkFileSystem = sqlite.NetworkFileSystem
)

// IsTagged reports whether a sidecar file says to which ledger it belongs.
func IsTagged(name string) bool { return sqlite.IsTagged(name) }

// ReadsLock reports whether a line of /proc/locks is understood as a process's lock.
func ReadsLock(line string) bool { return sqlite.IsLock(line) }
