package place

// IsTagged reports whether a sidecar file says to which ledger it belongs.
func IsTagged(name string) bool { return readTag(name) != "" }
