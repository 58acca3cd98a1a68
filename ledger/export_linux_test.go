package ledger

import (
	"strings"

	"jobledger/ledger/internal/sqlite/lockholders"
	"jobledger/ledger/internal/sqlite/place"
)

// NetworkName returns the name of the network file system that has this magic number.
var (
	NetworkName       = place.NetworkName
	NetworkFileSystem = place.NetworkFileSystem
)

// MountsHave reports whether path is a mount point by the text of mountinfo.
func MountsHave(mountinfo, path string) bool {
	return place.MountsHave(strings.NewReader(mountinfo), path)
}

// IsTagged reports whether a sidecar file names the ledger that it belongs to.
func IsTagged(name string) bool { return place.IsTagged(name) }

// ReadsLock reports whether a line of /proc/locks is parsed as a lock held by a process.
func ReadsLock(line string) bool { return lockholders.IsLock(line) }
