package ledger

// Whether a file system is known to be on the network.
var (
	NetworkName       = networkName
	NetworkFileSystem = networkFileSystem
)

// IsMarked reports whether a file says to which ledger it belongs.
func IsMarked(name string) bool { return readMark(name) != "" }
