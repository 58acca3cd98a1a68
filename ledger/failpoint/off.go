//go:build !failpoint || !unix

package failpoint

import "time"

// Hit does nothing here.
func Hit(string) {}

// Now returns the time by the system's clock here.
func Now() time.Time { return time.Now() }

// Statements returns sql as one here.
func Statements(sql string) []string { return []string{sql} }
