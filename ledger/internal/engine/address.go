package engine

import "strings"

// IsServerAddress reports whether dsn is the address of a ledger on a PostgreSQL server, and not the path of
// a file.
func IsServerAddress(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}
