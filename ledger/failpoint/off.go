//go:build !failpoint || !unix

package failpoint

import "time"

// Hit does nothing here.
func Hit(string) {}

// Now returns the time by the system's clock here.
func Now() time.Time { return time.Now() }

// Shifted reports whether the clock is not the system's: never.
func Shifted() bool { return false }

// Statements returns sql as one here.
func Statements(sql string) []string { return []string{sql} }
