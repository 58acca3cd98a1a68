//go:build !unix

package sqlite

// denied knows the permissions of Unix only.
func denied(string) error { return nil }

func mayWriteFile(string) error { return nil }

func mayRead(string) bool { return true }
