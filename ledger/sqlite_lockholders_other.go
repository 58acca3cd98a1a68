//go:build !linux

package ledger

// Holders returns nil: it is not known here who holds a lock.
func Holders(string) []Holder { return nil }
