//go:build !unix

package cli

// ReaderGone returns false: here only a write can detect that.
func ReaderGone() bool { return false }
