package ledger

// Whether a file system is known to be on the network.
var (
	NetworkName       = networkName
	NetworkFileSystem = networkFileSystem
)

// IsMarked reports whether a file says to which ledger it belongs.
func IsMarked(name string) bool { return readMark(name) != "" }

// ReadsLock reports whether a line of /proc/locks is understood as a process's lock.
func ReadsLock(line string) bool {
	_, ok := readLock(line)
	return ok
}
