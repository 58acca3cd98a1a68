package sqlite

// IsTagged reports whether a sidecar file says to which ledger it belongs.
func IsTagged(name string) bool { return readTag(name) != "" }

// IsLock reports whether a line of /proc/locks is a process's lock.
func IsLock(line string) bool {
	_, ok := readLock(line)
	return ok
}
