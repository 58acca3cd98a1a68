//go:build !unix

package jobcmd

// umaskText is empty: there is no umask.
func umaskText() string { return "" }
