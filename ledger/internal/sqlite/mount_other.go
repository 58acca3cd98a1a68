//go:build !linux

package sqlite

// isMountPoint returns false: only Linux mounts single files.
func isMountPoint(string) bool { return false }
