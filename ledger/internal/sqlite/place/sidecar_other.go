//go:build !linux

package place

// Without tags, only a -wal or -shm file without a ledger is noticed.

func identityOf(string) string { return "" }

func setTag(string, string) {}

func BelongsTo(string, string) bool { return true }
