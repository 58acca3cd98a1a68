package place

// FileSystem describes the file system that holds a ledger; the zero FileSystem where the system does not
// report it.
type FileSystem struct {
	Known    bool
	Network  string // the name of a network file system; "" for a local one
	ReadOnly bool
	Free     uint64 // bytes that this process may still write
	Size     uint64 // bytes
	NoFiles  bool   // no inode is left for another file
}
