//go:build !linux

package place

// isMountPoint returns false: only Linux mounts single files.
func isMountPoint(string) bool { return false }
