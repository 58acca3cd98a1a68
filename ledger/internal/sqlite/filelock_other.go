//go:build !unix

package sqlite

import "os"

// canLockFile says whether all other users can be kept from a file. Here a lock would prevent the rename as
// well, and the system renames no open file anyway.
const canLockFile = false

func lockFile(*os.File) error { return nil }

// pinName does nothing here: the file is compared with its name once SQLite has a lock on it.
func pinName(string) (*os.File, error) { return nil, nil }
