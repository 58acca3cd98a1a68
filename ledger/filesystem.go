package ledger

// Place is the file system that holds a ledger, as far as the system tells; the zero Place where it does not.
type Place struct {
	Known    bool
	Network  string // the name of a network file system; "" for a local one
	ReadOnly bool
	Free     uint64 // bytes that this process may still write
	NoFiles  bool   // no further file can be made
}
