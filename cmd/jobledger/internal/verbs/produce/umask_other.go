//go:build !unix

package produce

// umaskText is empty: there is no umask.
func umaskText() string { return "" }
