//go:build !linux

package ledger

// Elsewhere files have no marks: only a -wal or -shm file without a ledger is noticed.

func identityOf(string) string { return "" }

func setMark(string, string) {}

func belongs(string, string) bool { return true }
