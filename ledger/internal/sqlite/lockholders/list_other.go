//go:build !linux

package lockholders

// List returns nil: the holders of locks are not known here.
func List(string) []Holder { return nil }
