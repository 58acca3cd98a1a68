//go:build !linux

package ledger

// networkFileSystem knows the magic numbers of Linux only; elsewhere the choice is the operator's.
func networkFileSystem(string) string { return "" }
