package sqlite

import (
	"fmt"

	"jobledger/ledger/internal/sqlite/place"
)

// refuseNetwork refuses a path if what is at is on a network file system, unless the options allow that.
func refuseNetwork(path, at string, o options) error {
	if name := place.NetworkFileSystem(at); name != "" && !o.network {
		return fmt.Errorf("ledger: %s is on a network file system (%s), where SQLite's locks cannot be trusted; "+
			"keep the ledger on a local disk, or say sqlite:%s?network=allow", path, name, path)
	}
	return nil
}
