package ledger

// Whether a file system is known to be on the network.
var (
	NetworkName       = networkName
	NetworkFileSystem = networkFileSystem
)
